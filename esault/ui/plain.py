"""Lines, for logs and pipes: one a second at most where something has changed, else one now and then."""

from __future__ import annotations

import sys

from esault.control.report.summary import Snapshot
from esault.ui.rates import Rates, percent, short

__all__ = ["PlainView", "ProgressLines"]

EVERY = 1.0
#: a line comes although nothing has changed, so that a run which waits does not look dead
STILL = 30.0


class PlainView:
    """Prints user code's lines to stdout, all else to stderr."""

    def __init__(self) -> None:
        self._progress = ProgressLines(EVERY)

    def line(self, mark: str, text: str) -> None:
        """A line that a process printed."""
        print(f"[{mark}] {text}", flush=True)

    def notice(self, text: str) -> None:
        """Something the user should know."""
        print(text, file=sys.stderr, flush=True)

    def update(self, snapshot: Snapshot) -> None:
        """The run as it is."""
        text = self._progress.next(snapshot)
        if text:
            print(text, file=sys.stderr, flush=True)


class ProgressLines:
    """Lines that say how a run stands: where something has changed, else now and then."""

    def __init__(self, every: float) -> None:
        """`every` seconds at most."""
        self._every = every
        self._rates = Rates()
        self._next = 0.0
        self._last = ""
        self._still = 0.0

    def next(self, snapshot: Snapshot) -> str:
        """Return the line; empty where there is nothing to say now."""
        rates = self._rates.update(snapshot)
        if snapshot.phase != "running" or snapshot.now < self._next:
            return ""
        self._next = snapshot.now + self._every
        done = percent(snapshot)
        parts = [f"{snapshot.seconds:.0f} s"] + ([f"{done:.0f} %"] if done is not None else [])
        for unit in snapshot.units:
            many = f" x{unit.sub_units}" if unit.sub_units != 1 else ""
            handled = unit.tuples_out if unit.kind == "spout" else unit.tuples_in
            parts.append(f"{unit.name}{many} {short(handled)} ({short(rates.get(unit.name, 0.0))}/s)")
        text = "  ".join(parts)
        if text.partition("  ")[2] != self._last or snapshot.now >= self._still:
            self._still = snapshot.now + STILL
            self._last = text.partition("  ")[2]
            return text
        return ""
