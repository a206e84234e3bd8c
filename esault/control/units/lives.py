"""The lives of a unit's sub-units: forked, built, made known, started, and replaced when they die.

One that dies before its unit finishes is replaced by a new incarnation with the same ranges:
the replacement is introduced on both sides, started, and only then named in a table that the senders get.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from esault.control.units.sender_registry import SenderRegistry
from esault.control.units.signals import Begun, Introduced, MayFinish, MayTakeOver, NewOwnerStarted, SubUnitGone
from esault.control.units.sub_unit_record import SubUnitRecord
from esault.control.units.targets import Targets
from esault.control.units.unit_state import Component, Handler, UnitState
from esault.control.units.unit_throttle import UnitThrottle
from esault.messages.checkpoint import Restore
from esault.messages.control import Built, Drain, Fork, Start
from esault.messages.status import Status
from esault.routing.table import OutputTable

__all__ = ["Lives"]

#: sub-units that died so soon (seconds) after their start are counted; so many in a row end the topology
SHORT_LIFE, MOST_SHORT_LIVES = 2.0, 10
#: sub-units that died before they were started, in a row
MOST_STILLBORN = 3


class Lives(Component):
    """The sub-units of a unit: it makes them, starts them and replaces them."""

    def __init__(
        self,
        state: UnitState,
        senders: SenderRegistry,
        targets: Targets,
        throttle: UnitThrottle,
        ended_here: Callable[[int], bool] = lambda incarnation: False,
    ) -> None:
        """`ended_here` tells whether a sub-unit was ended by the unit itself, to make another one in its place."""
        self._state = state
        self._senders = senders
        self._targets = targets
        self._throttle = throttle
        self._ended_here = ended_here
        #: last committed position by part
        self.position: dict[int, bytes] = {}
        #: rows read so far, and the sub-unit that read first, by part
        self.read: dict[int, int] = {}
        self.source: dict[int, int] = {}
        self._restores: Mapping[int, Restore] = {}
        #: living processes that the first sub-units go on in, by part: sub-units of the life before
        self.reused: Mapping[int, int] = {}
        #: makes the first table of the first sub-units
        self.first_table: Callable[[list[int]], OutputTable] = OutputTable.even
        self._short_lives = 0
        self._stillborn = 0

    def handlers(self) -> Mapping[type, Handler]:
        return {
            Built: self._on_built,
            Status: self._on_status,
            MayTakeOver: self._on_may_take_over,
            Introduced: self._on_introduced,
        }

    # starting --------------------------------------------------------------------------------------

    def start(self, now: float, restores: Mapping[int, Restore] | None = None) -> None:
        """Have the first sub-units forked; `restores` by part: what they begin with."""
        self._restores = restores or {}
        for part in range(self._state.parallelism):
            self._fork(part, None)
        self._state.history.append((now, self._state.parallelism))

    def _fork(self, part: int, replaces: int | None) -> None:
        state = self._state
        reused = self.reused.get(part, 0) if replaces is None else 0
        build = state.new_build(
            unit=state.name,
            **({"beside": reused} if reused else {}),
            part=part,
            parts=state.parallelism,
            position=self.position.get(part),
            source=self.source.get(part, 0),
            restore=self._restores.get(part) if replaces is None else None,
        )
        self.source.setdefault(part, build.incarnation)
        state.subs[build.incarnation] = SubUnitRecord(build.incarnation, part, replaces, missing=set(state.targets))
        state.tell_keeper(Fork(build, reused))
        if reused:
            state.tell(build.incarnation, build)

    def fork_newcomer(self, host: str | None) -> int:
        """Have one more sub-unit forked for a change, on this host where one is said. Raises UsageError."""
        state = self._state
        where = {} if host is None else {"on": host}
        build = state.new_build(unit=state.name, part=len(state.subs), parts=state.parallelism, joins=True, **where)
        state.subs[build.incarnation] = SubUnitRecord(
            build.incarnation, build.part, joining=True, missing=set(state.targets)
        )
        state.tell_keeper(Fork(build))
        return build.incarnation

    def _on_built(self, message: Built, now: float) -> None:
        state = self._state
        record = state.subs.get(message.incarnation)
        if record is None:
            return
        record.built = message
        state.endpoints[record.incarnation] = (message.endpoint, message.express)
        if record.replaces is not None or record.joining:
            self._senders.introduce(record)
            self._targets.register([record.incarnation])
            state.say(MayTakeOver(record), now)
        elif state.table is None and all(r.built for r in state.subs.values()):
            self._stillborn = 0
            state.table = self.first_table(list(state.subs))
            state.event("built")

    def register(self) -> None:
        """Tell the units it sends to about all sub-units."""
        self._state.wiring = True
        self._targets.register(self._state.subs)
        self._targets.check_wired()

    def go(self, now: float) -> None:
        """Start all sub-units."""
        self._state.going = True
        for record in list(self._state.subs.values()):
            if record.replaces is None:
                self.begin(record, now)
            else:  # its predecessor died while the run was being wired
                self._state.say(MayTakeOver(record), now)

    def begin(self, record: SubUnitRecord, now: float) -> None:
        """Start a sub-unit."""
        record.started_at = now
        self._state.tell(record.incarnation, Start())
        self._state.say(Begun(record), now)
        if self._state.draining and self._state.plan.kind == "spout":
            self._state.tell(record.incarnation, Drain(self.read.get(record.part, 0)))
        self._throttle.share(now)

    def drain(self) -> None:
        """Have spouts read no more."""
        self._state.draining = True
        if self._state.plan.kind == "spout":
            for record in self._state.subs.values():
                if record.started_at is not None:
                    self._state.tell(record.incarnation, Drain())

    def _on_status(self, message: Status, now: float) -> None:
        record = self._state.subs.get(message.incarnation)
        if record is None:
            return
        self._state.measurements.update(message)
        if message.position is not None:
            self.position[record.part] = message.position
        self.read[record.part] = max(message.read, self.read.get(record.part, 0))

    # newcomers and replacements --------------------------------------------------------------------

    def _on_may_take_over(self, message: MayTakeOver, now: float) -> None:
        record = message.record
        if record.joining:
            if self._introduced(record):
                self.begin(record, now)
                # No bolt's newcomer gets a tuple before all of its change have started; a spout's emits at once.
                self._state.event("rescaled" if self._state.plan.kind == "bolt" else "reachable")
            self._state.say(NewOwnerStarted(), now)
        elif record.replaces is not None and self._state.going and self._introduced(record):
            self._state.say(Introduced(record), now)

    def _introduced(self, record: SubUnitRecord) -> bool:
        """Return whether those it gets from and those it sends to know this newcomer, which has not been started."""
        if record.started_at is not None or record.built is None or self._state.table is None:
            return False
        return self._senders.knows(record.incarnation) and self._targets.know(record)

    def _on_introduced(self, message: Introduced, now: float) -> None:
        self.take_over(message.record, now)

    def take_over(self, record: SubUnitRecord, now: float, after_death: bool = True) -> None:
        """Start a replacement, and send the senders a table that names it."""
        assert self._state.table is not None and record.replaces is not None
        self.begin(record, now)
        self._state.table.replace(record.replaces, record.incarnation)
        self._state.event("reachable")
        self._senders.publish(after_death)

    # deaths ----------------------------------------------------------------------------------------

    def died(self, record: SubUnitRecord, reason: str, now: float, with_host: bool = False) -> None:
        """Replace a sub-unit that died, unless its work was done; fail if this happens too often without its host."""
        state, incarnation = self._state, record.incarnation
        state.subs.pop(incarnation, None)
        state.measurements.died(incarnation)
        self._targets.unregister(incarnation, state.finishing)
        if state.finishing:
            # Its inputs were all done; what it had left to say in finish() is lost with its state.
            state.say(MayFinish(), now)
            return
        if not with_host and self._dies_too_often(record, reason, now):
            return
        if state.table is None or not state.wiring:
            # The run is being built and no sender knows of the table yet: as if it had not been built at all.
            state.table = None
            self._fork(record.part, None)
        else:
            in_table = record.replaces is None or incarnation in state.table.owners()
            self._fork(record.part, incarnation if in_table else record.replaces)
        self._senders.not_confirmed_by(incarnation, now)

    def forget(self, incarnation: int, now: float) -> None:
        """Forget a sub-unit that has no ranges and is gone: no other one takes its place."""
        self._targets.unregister(incarnation, last=True)
        self._state.say(SubUnitGone(incarnation), now)

    def _dies_too_often(self, record: SubUnitRecord, reason: str, now: float) -> bool:
        if record.restarting or self._ended_here(record.incarnation):
            return False
        if record.started_at is None:
            self._stillborn += 1
        else:
            self._stillborn = 0
            self._short_lives = self._short_lives + 1 if now - record.started_at < SHORT_LIFE else 0
        if self._stillborn < MOST_STILLBORN and self._short_lives < MOST_SHORT_LIVES:
            return False
        times = max(self._stillborn, self._short_lives)
        why = reason or "no reason known: look for native code that crashes, or for too little memory"
        self._state.event(
            "failed",
            f"unit {self._state.name!r}: its process died {times} times in a row, each time shortly after it was "
            f"started ({why})",
        )
        return True

    # going back ------------------------------------------------------------------------------------

    @property
    def spared(self) -> dict[int, int]:
        """Sub-units whose processes go on when all go back, by part: their sources would not give the same once more."""
        if not self._state.plan.spooled:
            return {}
        # One that has just been told to go on as another sub-unit lives, although it has not said so yet.
        subs = self._state.subs.items()
        return {r.part: i for i, r in subs if (r.built is not None or r.part in self.reused) and not r.stopped}

    def ranges_by_part(self) -> dict[int, tuple[tuple[int, int], ...]]:
        """Return the ranges that each of the first sub-units will have, by part."""
        parts = list(range(self._state.parallelism))
        if self._state.plan.kind == "spout":
            return dict.fromkeys(parts, ())
        table = self.first_table(parts)
        return {part: tuple(table.ranges(part)) for part in parts}
