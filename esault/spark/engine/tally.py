"""Counts of a process during one batch, and of a whole run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from esault.histogram import Histogram

__all__ = ["Count", "Tally"]


class Count:
    """Of one unit."""

    def __init__(self) -> None:
        self.rows_in = self.rows_out = 0
        self.errors = self.dead_letters = self.late = 0
        #: seconds in user code
        self.busy = 0.0
        self.latency = Histogram()
        self.end_to_end = Histogram()

    def __bool__(self) -> bool:
        return bool(self.rows_in or self.rows_out or self.errors)

    def pop(self) -> tuple[int, ...]:
        """Return what follows from the rows, as a plain value, and begin anew."""
        taken = self.rows_in, self.rows_out, self.errors, self.dead_letters, self.late
        self.rows_in = self.rows_out = self.errors = self.dead_letters = self.late = 0
        return taken

    def pop_times(self) -> tuple[Any, ...]:
        """Return what was measured, as a plain value, and begin anew."""
        taken = self.busy, self.latency.snapshot(), self.end_to_end.snapshot()
        self.busy, self.latency, self.end_to_end = 0.0, Histogram(), Histogram()
        return taken

    def add(self, taken: tuple[int, ...]) -> None:
        """Add what `pop` gave, of another one."""
        rows_in, rows_out, errors, dead_letters, late = taken[:5]  # 0.1 wrote times behind them
        self.rows_in += rows_in
        self.rows_out += rows_out
        self.errors += errors
        self.dead_letters += dead_letters
        self.late += late

    def add_times(self, taken: tuple[Any, ...]) -> None:
        """Add what `pop_times` gave, of another one."""
        busy, latency, end_to_end = taken
        self.busy += busy
        self.latency.merge(Histogram.from_snapshot(latency))
        self.end_to_end.merge(Histogram.from_snapshot(end_to_end))


class Tally:
    """Of a run: of its epochs that were committed, each counted once."""

    def __init__(self, units: Mapping[str, Any]) -> None:
        self.units = {name: Count() for name in units}
        self.epochs = 0

    def add(self, counts: Mapping[str, tuple[int, ...]]) -> None:
        """Add what one process counted in one batch."""
        for name, taken in counts.items():
            self.units[name].add(taken)

    def add_times(self, times: Mapping[str, tuple[Any, ...]]) -> None:
        """Add what one process measured in one batch."""
        for name, taken in times.items():
            if name in self.units:  # else the code was another one when it was measured
                self.units[name].add_times(taken)

    @property
    def end_to_end(self) -> Histogram:
        """Return the counts of all units that send to no other."""
        total = Histogram()
        for count in self.units.values():
            total.merge(count.end_to_end)
        return total
