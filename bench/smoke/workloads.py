"""Workloads A and B for the regression guard, in this process, the same steps each time.

The clock is a manual one that goes on by a fixed time with each step, and nothing is left to chance: the same code does the same each
time, whatever else the machine does. Roots of 128 tuples make the cost of a root count beside that of a tuple, and the counts
proportional to the load; "B, large roots" has those of a busy run.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.kit.measure import missing
from bench.workloads.loads import LENGTH, records, sentences
from bench.workloads.topologies import Count, Split
from esault import Sink, Topology, by_key, shuffle
from esault.messages.delivery import Delivery
from esault.messages.settings import Settings
from esault.sinks import SparkTable
from esault.sources import Items
from esault.testing import LocalRuntime, ManualClock

__all__ = ["WORKLOADS", "Workload"]

#: seconds that a step takes by the run's clock, so that what lingers goes, and what is due comes
STEP = 0.0005
#: steps from the end of a checkpoint to the next one
CHECKPOINT_STEPS = 8

#: as in a process of a run: what LocalRuntime does beside that, to find faults of user code, is none of the data path
LARGE = Settings(watch_values=False, reload_state=False)
SMALL = replace(LARGE, root_rows=128)
CHECKPOINTS = replace(SMALL, delivery=Delivery.EXACTLY_ONCE)


class InTurn(random.Random):
    """In place of the order of events that LocalRuntime draws: each process has its turn, and takes as much as it may.

    A draw more or less would change the whole order, and with it how often a process looks in vain.
    """

    def random(self) -> float:
        return 0.0

    def shuffle(self, x: Any, random: Any = None) -> None:
        """As it is."""

    def randint(self, a: int, b: int) -> int:
        return b


class Counted(Sink):
    """Counts rows."""

    rows = 0

    def write_columns(self, keys: Sequence[Any], values: Sequence[Any], time: float, ids: Any) -> None:
        self.rows += len(keys)


class CountedTable(SparkTable):
    """A table that counts rows."""

    rows = 0

    def write_columns(self, keys: Sequence[Any], values: Sequence[Any], time: float, ids: Any) -> None:
        self.rows += len(keys)
        super().write_columns(keys, values, time, ids)


@dataclass(frozen=True)
class Workload:
    """A topology, its load and its sink."""

    name: str
    topology: Callable[[list[Any], Sink], Topology]
    #: n different rows for the spout
    load: Callable[[int], list[Any]]
    #: tuples that are counted for each row of the load
    each: int
    #: rows of the load that a run begins with: they bring new keys, and what is done once
    warm: int
    #: rows that follow, which are what is counted
    more: int
    #: how many rows come out for these
    results: Callable[[list[Any]], int]
    sink: Callable[[Path], Any] = lambda folder: Counted()
    settings: Settings = SMALL
    #: the package without which it cannot run
    needs: str | None = None
    #: rows that follow are those before once more, so that all keys are known
    known: bool = True

    @property
    def tuples(self) -> int:
        """Return what the counts are divided by."""
        return self.more * self.each

    @property
    def missing(self) -> str | None:
        """Return why it cannot run here; None where it can."""
        return missing(self.needs) if self.needs else None

    def rows(self, n: int) -> list[Any]:
        """The first n rows of the load."""
        if not self.known:
            return self.load(n)
        once = self.load(min(n, self.warm))
        return (once * -(-n // len(once)))[:n]

    def run(self, rows: list[Any]) -> int:
        """A whole run; the number of its checkpoints. Raises RuntimeError where it fails, or more or less comes out than must."""
        with tempfile.TemporaryDirectory() as folder:
            sink = self.sink(Path(folder))
            clock, state, checkpoints = ManualClock(), None, 0
            if self.settings.delivery == "eo":
                state = Path(folder) / "state"
                state.mkdir()
            local = LocalRuntime(
                self.topology(rows, sink), settings=self.settings, clock=clock, real=True, state_dir=state
            )
            local._order = InTurn(0)
            next_at = CHECKPOINT_STEPS
            while local.driver.phase != "ended":
                clock.advance(STEP)
                if not local.step():
                    local.wait()
                next_at -= 1
                if state is not None and next_at <= 0 and local.driver.may_checkpoint:
                    local.checkpoint()
                    checkpoints += 1
                    next_at = CHECKPOINT_STEPS
        if local.driver.failure is not None:
            raise RuntimeError(f"workload {self.name}: the run failed: {local.driver.failure}")
        if sink.rows != self.results(rows):
            raise RuntimeError(f"workload {self.name}: {sink.rows:,} rows came out in place of {self.results(rows):,}")
        return checkpoints


def _words(rows: list[Any], sink: Sink) -> Topology:
    t = Topology("smoke-words")
    lines = t.spout("lines", Items(rows))
    lines.bolt("split", Split, grouping=shuffle()).bolt("count", Count, grouping=by_key()).sink("out", sink)
    return t


def _sums(rows: list[Any], sink: Sink) -> Topology:
    t = Topology("smoke-sums")
    even = t.spout("records", Items(rows)).map(lambda value: value + 1).filter(lambda value: value % 2 == 0)
    even.bolt("sum", Count, grouping=by_key()).sink("out", sink)
    return t


def _lines(n: int) -> list[Any]:
    """n sentences of ten words for a spout."""
    return [(None, line) for line in sentences(n)]


def _new_keys(n: int) -> list[Any]:
    return [(f"n{i}", 1) for i in range(n)]


def _spoken(rows: list[Any]) -> int:
    return len(rows) * LENGTH


def _even(rows: list[Any]) -> int:
    return sum((value + 1) % 2 == 0 for _, value in rows)


def _table(folder: Path) -> CountedTable:
    return CountedTable(str(folder / "table"), columns={"word": str, "total": int})


WORKLOADS = [
    Workload("A", _words, _lines, LENGTH, 256, 768, _spoken),
    Workload("A, table", _words, _lines, LENGTH, 256, 768, _spoken, _table, needs="pyarrow"),
    Workload("B", _sums, records, 1, 2048, 6144, _even),
    Workload("B, large roots", _sums, records, 1, 10_240, 20_480, _even, settings=LARGE),
    Workload("B, checkpoints", _sums, records, 1, 2048, 6144, _even, settings=CHECKPOINTS),
    Workload("B, new keys", _sums, _new_keys, 1, 1024, 3072, _even, known=False),
]
