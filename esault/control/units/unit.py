"""A unit: a spout or bolt as it runs, all its sub-units together. It owns their output table.

It is put together from components, which share a `UnitState`: the senders, the targets, the lives of sub-units, the
change that is on, the end, the throttle, and the replication. A message goes to the components that know it. Components
talk by signals, which go the same way. The module has no logic but that: it is the face of a unit to its driver.

It is one module of over 300 lines: most of its lines are the names by which others reach its components.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import count
from typing import Any

from esault.control.units.change import Change
from esault.control.units.change_requests import BY_HAND, ChangeRequests, Requests
from esault.control.units.endings import Endings
from esault.control.units.lives import Lives
from esault.control.units.measurements import Measurements
from esault.control.units.rescale import Rescale
from esault.control.units.sender_registry import SenderRegistry
from esault.control.units.signals import Died, Look, MayEnd, Replaced, SubUnitGone, WentBack
from esault.control.units.split_assignment import SplitAssignment
from esault.control.units.sub_unit_record import SubUnitRecord
from esault.control.units.targets import Targets
from esault.control.units.unit_state import Component, Handler, UnitState
from esault.control.units.unit_throttle import UnitThrottle
from esault.control.units.unreplicated import Replication, Unreplicated
from esault.messages.change_record import ChangeRecord
from esault.messages.checkpoint import CompletedUnit, Restore
from esault.messages.control import Build, Table
from esault.routing.table import OutputTable
from esault.topology.plan import Plan, UnitPlan
from esault.topology.split_source import SplitSource

__all__ = ["Unit"]


class Unit:
    """The core of the unit's actor."""

    def __init__(
        self,
        plan: Plan,
        unit: UnitPlan,
        parallelism: int,
        new_build: Callable[..., Build],
        new_id: Callable[[], int] | None = None,
    ) -> None:
        """`new_build` makes the order for a new sub-unit; `new_id` numbers changes, all units of a run together."""
        self.plan = unit
        self.name = unit.name
        self.parallelism = parallelism
        self._topology = plan
        self.new_id = new_id or count(1).__next__
        #: when one of its sub-units died last, and with checkpoints any of the run
        self.died_at: float | None = None
        state = self.state = UnitState(unit, parallelism, new_build, self._hear)
        state.targets = plan.targets(unit)
        self.throttling = UnitThrottle(state)
        self.senders = SenderRegistry(state, self._table_for_sender)
        self.targets = Targets(state)
        self.lives = Lives(state, self.senders, self.targets, self.throttling, self.ended_here)
        #: of a spout that reads splits
        self.splits = SplitAssignment(state, unit.spout) if isinstance(unit.spout, SplitSource) else None
        holds_end = lambda incarnation: self.splits is not None and self.splits.holds_end(incarnation)
        self.endings = Endings(state, self.senders, self.lives, self.throttling, lambda: self.changing, holds_end)
        self.rescaling = Rescale(state, self.senders, self.lives, self.throttling)
        #: changes of this unit alone, whatever its replicas do
        self.alone = ChangeRequests(
            state,
            self.rescaling,
            self.endings,
            lambda: self.steady,
            self._check_replicas,
            self.new_id,
        )
        self.replicate(Unreplicated(self), self.alone)

    def replicate(self, replication: Replication, requests: Requests) -> None:
        """Be one of the active replicas of a unit: `requests` are what is asked of all of them."""
        self.replication = replication
        self.requests = requests
        parts: list[Replication | Component] = [replication, self.rescaling, self.senders, self.targets]
        parts += [self.endings, self.lives, *([self.splits] if self.splits is not None else [])]
        handlers: dict[type, list[Handler]] = defaultdict(list)
        for part in parts:
            for kind, handler in part.handlers().items():
                handlers[kind].append(handler)
        self._handlers = dict(handlers)

    def be_exact(self, exactly: bool) -> None:
        """Commit with checkpoints, or not."""
        self.endings.exactly = exactly
        if self.splits is not None:
            self.splits.exactly = exactly

    def handle(self, message: Any, now: float) -> bool:
        """Take a message from a sub-unit of ours or from another unit; False if no unit knows it."""
        handlers = self._handlers.get(type(message))
        if handlers is None:
            return False
        for handler in handlers:
            if handler(message, now) is True:
                break
        return True

    def _hear(self, signal: Any, now: float) -> None:
        self.handle(signal, now)

    # The replication is chosen after the components are made: they ask the unit for it.

    def _table_for_sender(self, table: Table) -> Table:
        return self.replication.table_for(table)

    def _check_replicas(self) -> None:
        self.replication.check_change()

    # its state -------------------------------------------------------------------------------------

    @property
    def outbox(self) -> deque[tuple[Any, Any]]:
        """Messages to send, as (address, message): an incarnation, ("unit", name) or "keeper"."""
        return self.state.outbox

    @property
    def events(self) -> deque[tuple[str, str]]:
        """Events that the driver must know; see `UnitState`."""
        return self.state.events

    @property
    def subs(self) -> dict[int, SubUnitRecord]:
        """Living sub-units by incarnation."""
        return self.state.subs

    @property
    def table(self) -> OutputTable | None:
        """The owners of all parts of the ring; None before it is built."""
        return self.state.table

    @table.setter
    def table(self, table: OutputTable) -> None:
        self.state.table = table

    @property
    def planned(self) -> OutputTable | None:
        """The same; while a change in subscales is on, as it will be when all of them have moved."""
        change = self.change
        return self.table if change is None or change.final is None else change.final

    @property
    def measurements(self) -> Measurements:
        """The reports of its sub-units."""
        return self.state.measurements

    @property
    def history(self) -> list[tuple[float, int]]:
        """(time, parallelism), for the report."""
        return self.state.history

    @property
    def changes(self) -> list[ChangeRecord]:
        """Changes that have ended, dropped ones included."""
        return self.state.changes

    @property
    def change(self) -> Change | None:
        """The change that is on."""
        return self.rescaling.change

    @property
    def moving(self) -> bool:
        """Return whether a change is on, and not between two subscales: no checkpoint can begin."""
        return self.rescaling.moving

    @property
    def width(self) -> int:
        """The number of sub-units that own a part of the ring."""
        return self.state.width

    @property
    def keyed(self) -> bool:
        """Return whether rows and state move: by key, or all of them."""
        return self.state.keyed

    @property
    def finishing(self) -> bool:
        """Return whether all inputs have ended."""
        return self.state.finishing

    @property
    def wired(self) -> bool:
        """Return whether all first sub-units have the first tables of those they send to."""
        return self.targets.wired

    def unwired(self) -> set[int]:
        """Return the sub-units that have not confirmed all senders, or lack the tables of a unit that they send to."""
        records = self.subs.values()
        return {r.incarnation for r in records if not (self.targets.know(r) and self.senders.knows(r.incarnation))}

    @property
    def unsettled(self) -> bool:
        """Return whether senders are being registered or told of a table."""
        return self.senders.unsettled

    @property
    def changing(self) -> bool:
        """Return whether a change is on, a sub-unit is leaving, or state is on its way from or to a replica."""
        return self.change is not None or self.endings.leaving or self.replication.busy or self.state.joining

    @property
    def steady(self) -> bool:
        """Return whether it is neither starting nor ending. A newcomer of one that had finished would finish what it gets once more."""
        state = self.state
        ending = state.finishing or state.finished_before or (self.splits is not None and self.splits.moving)
        ending = ending or state.joining
        return not ending and state.table is not None and all(r.started_at is not None for r in state.subs.values())

    @property
    def all_replicas(self) -> Sequence[Unit]:
        """The active replicas of this unit, itself included; it alone where it has none."""
        return self.replication.units

    @property
    def down(self) -> bool:
        """Return whether this replica lacks a sub-unit or some of its state."""
        return self.replication.down

    # its life --------------------------------------------------------------------------------------

    def start(self, now: float, restores: Mapping[int, Restore] | None = None) -> None:
        """Have the first sub-units forked; `restores` by part: what they begin with."""
        self.lives.start(now, restores)

    def begin_from(self, completed: CompletedUnit, number: int, now: float) -> None:
        """Start with the state of a checkpoint."""
        self.state.finished_before = completed.finished
        self.lives.position = dict(completed.positions)
        self.lives.source.update(completed.sources)
        if self.splits is not None:
            self.splits.begin_from(completed.splits)
        ranges_by_part = self.lives.ranges_by_part()
        restores = {
            part: Restore(
                number,
                completed.chains,
                ranges,
                completed.finished,
                completed.in_flight,
                completed.ranges,
                completed.windows,
            )
            for part, ranges in ranges_by_part.items()
        }
        self.start(now, restores)

    def register(self) -> None:
        """Tell the units it sends to about all sub-units."""
        self.lives.register()

    def go(self, now: float) -> None:
        """Start all sub-units."""
        self.lives.go(now)

    def drain(self) -> None:
        """Have spouts read no more."""
        self.lives.drain()

    def stop(self, at_once: bool) -> None:
        """Have all sub-units leave."""
        self.endings.stop(at_once)

    def check(self, now: float) -> None:
        """Look whether a change, or a replica that is not whole, can go on."""
        self.handle(Look(), now)
        self.replication.check(now)

    def died(self, incarnation: int, reason: str, now: float, with_host: bool = False) -> None:
        """Deal with the death of a sub-unit, alone or `with_host`: it is replaced unless its work was done."""
        record = self.subs.get(incarnation)
        if record is None or record.stopped:
            return
        self.replication.dying(record)
        self.died_at = now
        self.handle(Died(record), now)
        if incarnation in self.subs:  # else it went with the change that it was made for
            if record.leaving and not self.finishing:
                self.endings.died_leaving(record, now)
            else:
                self.lives.died(record, reason, now, with_host)
            self.handle(Replaced(record), now)
            self.handle(SubUnitGone(incarnation), now)
            self.handle(MayEnd(), now)
        self.replication.died(incarnation)

    def ended_here(self, incarnation: int) -> bool:
        """Return whether this unit had a process ended, to make another one in its place."""
        return self.replication.ended_here(incarnation)

    def successor(self, now: float) -> Unit:
        """Return the same unit for its next life: as many sub-units, with the same shares of the ring, without state."""
        self.handle(WentBack(), now)  # a change that is on may give it another table
        width = self.parallelism if self.plan.kind == "spout" and self.splits is None else self.width
        made = Unit(self._topology, self.plan, width, self.state.new_build, self.new_id)
        made.state.targets = self.state.targets
        made.be_exact(self.endings.exactly)
        made.state.checkpoints = self.state.checkpoints
        made.throttling.go_on_from(self.throttling)
        made.lives.reused = self.spared
        made.lives.read, made.lives.source = self.lives.read, self.lives.source
        made.state.draining = self.state.draining
        for incarnation in self.subs:
            self.measurements.died(incarnation, state_too=False)
        made.state.changes, made.state.history = self.changes, self.history
        made.state.measurements, made.died_at = self.measurements, now
        if self.table is not None and self.plan.kind != "spout":
            pairs, owners = self.table.snapshot()[1], self.table.owners()
            version = self.table.version

            def table(subs: list[int]) -> OutputTable:
                new = dict(zip(owners, subs))
                return OutputTable([(start, new[owner]) for start, owner in pairs], version + 1)

            made.lives.first_table = table
        return made

    # changes ---------------------------------------------------------------------------------------

    def check_change(self, after: int) -> None:
        """Refuse a change to so many sub-units that cannot be. Raises UsageError with one clear line."""
        self.alone.check(after)

    def split(self, owner: int, now: float, at: int | None = None, reason: str = "", policy: str = BY_HAND) -> int:
        """Give a new sub-unit the upper part of the owner's largest interval; return the change's id. Raises UsageError."""
        return self.requests.split(owner, now, at, reason, policy)

    def merge(self, owner: int, now: float, reason: str = "", policy: str = BY_HAND) -> int:
        """Give the owner's intervals to their neighbours; return the change's id. Raises UsageError."""
        return self.requests.merge(owner, now, reason, policy)

    def move(self, owner: int, now: float, reason: str = "", policy: str = BY_HAND, host: str | None = None) -> int:
        """Put a new sub-unit in the owner's place, on `host` if named; return the change's id. Raises UsageError."""
        return self.requests.move(owner, now, reason, policy, host)

    def rescale(self, n: int, now: float, reason: str = "", policy: str = BY_HAND) -> int | None:
        """Give the unit n sub-units with equal shares; return the change's id, None if it has n. Raises UsageError."""
        return self.requests.rescale(n, now, reason, policy)

    def adopt(self, after: OutputTable, news: int, now: float, kind: str, reason: str, policy: str) -> int:
        """Take any other table, where -1, -2 ... stand for new sub-units; return the change's id. Raises UsageError."""
        return self.requests.adopt(after, news, now, kind, reason, policy)

    def throttle(self, rate: float, seconds: float, now: float) -> None:
        """Process (a spout: read) `rate` tuples a second at most, all sub-units together, for so many seconds. Raises UsageError."""
        self.throttling.begin(rate, seconds, now)

    def unthrottle(self, now: float) -> None:
        """Lift the throttle: the unit works as fast as it can from now on."""
        self.throttling.lift(now)

    # checkpoints -----------------------------------------------------------------------------------

    @property
    def sources(self) -> dict[int, int]:
        """The first sub-unit that read a part of the source."""
        return dict(self.lives.source)

    @property
    def spared(self) -> dict[int, int]:
        """Sub-units whose processes go on when all go back, by part: their sources would not give the same once more."""
        return self.lives.spared

    @property
    def wants_checkpoint(self) -> bool:
        """Return whether a leaving sub-unit waits for a checkpoint."""
        return self.endings.wants_checkpoint or (self.splits is not None and self.splits.wants_checkpoint)

    def checkpointed(self, finished: Collection[int]) -> None:
        """Note that a checkpoint is complete, to which these sub-units did their part after they had finished."""
        self.endings.checkpointed(finished)

    @property
    def all_stopped(self) -> bool:
        """Return whether every living sub-unit has said its last word."""
        return self.endings.all_stopped
