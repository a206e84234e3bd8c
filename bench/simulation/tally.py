"""A unit whose state is asked for while it changes: the answers for a key must be linearizable.

It counts the rows of each key of a spout and puts out each count, so that what it had at a checkpoint stands in its table.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from bench.simulation.outside import Broken
from esault import Bolt, Sink, by_key
from esault.errors import UsageError

if TYPE_CHECKING:
    from bench.simulation.simulation import Simulation

__all__ = ["NAME", "Asked", "Operation", "Tally", "explained", "tallied"]


NAME = "tally"


class Tally(Bolt):
    """Counts the rows of a key."""

    #: told (key, count, sub-unit) of each; set by the simulation that runs
    heard: Any = None

    def __init__(self) -> None:
        self.n = 0

    def process(self, key: Any, value: Any) -> None:
        self.n += 1
        Tally.heard(key, self.n, self.context.sub_unit)
        self.emit(key, self.n)


class _Rows(Sink):
    def write(self, rows: Any) -> None:
        """Stand where a table is put."""


def tallied(topology: Any, streams: Any) -> None:
    """Add the unit behind the first spout."""
    first = next(iter(streams.values()))
    first.bolt(NAME, Tally, by_key(), parallelism=2).sink(f"{NAME}-out", _Rows())


class Asked:
    """The history of each key, as operations on a register, and the questions that are open."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        #: text of the key -> its value when all went back last, and what has happened to it since
        self._first: Counter[str] = Counter()
        self._happened: dict[str, list[Operation]] = defaultdict(list)
        self._open: list[tuple[float, int, Any, Any]] = []

    def heard(self, key: Any, n: int, sub_unit: int) -> None:
        """A sub-unit has counted a row: one that was given up counts for nothing."""
        life = self._simulation.life
        if life.ended is None and sub_unit in life.driver.units[NAME].subs and sub_unit in life.own:
            happened = self._happened[repr(key)]
            # It counts the rows of a batch one after the other.
            at = max(self._simulation.events.now, self._newest(happened))
            happened.append(Operation(at, at, True, n))

    @staticmethod
    def _newest(happened: list[Operation]) -> float:
        """The first moment behind the newest write."""
        written = next((each.returned for each in reversed(happened) if each.writes), 0.0)
        return math.nextafter(written, math.inf)

    def gone_back(self) -> None:
        """All have the state of the checkpoint: what its table shows."""
        self.judge()
        self._first = Counter(repr(row.key) for row in self._simulation.outside.tables[f"{NAME}-out"].rows)
        self._open.clear()

    def ask(self, key: Any) -> None:
        """Ask for a key's count."""
        life = self._simulation.life
        try:
            answer = life.driver.commands.states.ask(lambda: life.driver.units[NAME], (key,), "", 10)
        except UsageError:
            return
        self._simulation.history.counts["questions"] += 1
        self._open.append((self._simulation.events.now, life.driver.epoch, key, answer))

    def look(self) -> None:
        """Note the answers that have come."""
        for each in list(self._open):
            asked, epoch, key, answer = each
            said = answer()
            if said is None:
                continue
            self._open.remove(each)
            if epoch != self._simulation.life.driver.epoch:
                continue  # of the checkpoint that all have gone back to meanwhile
            if "error" in said:
                self._simulation.history.counts["questions to ask again"] += 1
                continue
            self._simulation.history.counts["answers"] += 1
            got = said["found"][0]["state"]["n"] if said["found"] else 0
            happened = self._happened[repr(key)]
            happened.append(Operation(asked, max(self._simulation.events.now, self._newest(happened)), False, got))

    def judge(self) -> None:
        """Check that what was answered since all went back last is linearizable. Raises Broken."""
        # At least once the state of who died is gone, and what is replayed counts once more.
        exact = self._simulation.exactly or not self._simulation.scenario.fault_every
        for key, happened in self._happened.items():
            if exact and any(not each.writes for each in happened):
                self._simulation.history.counts["histories"] += 1
                if not explained(happened, self._first[key]):
                    raise Broken(
                        f"the answers for {key} are not linearizable, from {self._first[key]} on: {sorted(happened)}"
                    )
        self._happened.clear()


class Operation(NamedTuple):
    """A write of a value, or a read that was answered with one."""

    invoked: float
    returned: float
    writes: bool
    value: Any


def explained(history: Sequence[Operation], initial: Any) -> bool:
    """Return whether some order of the operations explains all values that were read, from this value on: whether they are linearizable.

    Wing and Gong's search with Lowe's memory of what was tried: an operation may be the next one if no other one that is left had returned
    before it was invoked; each must take effect between its invocation and its response.
    """
    operations = sorted(history)
    count = len(operations)
    #: (all before this one are done, those behind it that are done, the value): nothing came of it, or it is yet to be tried
    tried: set[tuple[int, frozenset[int], Any]] = set()
    stack: list[tuple[int, frozenset[int], Any]] = [(0, frozenset(), initial)]
    while stack:
        first, done, value = here = stack.pop()
        if here in tried:
            continue
        tried.add(here)
        if first == count:
            return True
        until = operations[first].returned
        for i in range(first, count):
            each = operations[i]
            if each.invoked > until:
                break
            if i in done:
                continue
            until = min(until, each.returned)
            if not each.writes and each.value != value:
                continue
            after, rest = first, done | {i}
            while after in rest:
                rest = rest - {after}
                after += 1
            stack.append((after, rest, each.value if each.writes else value))
    return False
