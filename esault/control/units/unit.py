"""A unit: a spout or bolt as it runs, all its sub-units together. It owns their output table.

Life of a sub-unit: forked, built, known to the units it gets from and sends to, started, ended, finished, stopped.
One that dies before its unit finishes is replaced by a new incarnation with the same ranges (PROTOCOL section 7):
the replacement is introduced on both sides, started, and only then named in a table that the senders get.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from esault.control.units.measurements import Measurements
from esault.messages.checkpoint import Restore
from esault.messages.control import (
    Add,
    Added,
    Broken,
    Build,
    Built,
    Connect,
    Drain,
    Ended,
    Finish,
    Finished,
    Fork,
    Gone,
    Register,
    Registered,
    SenderSwitched,
    Start,
    Stop,
    Stopped,
    Switched,
    Table,
    TableFor,
    Unregister,
)
from esault.messages.status import Status
from esault.routing.table import OutputTable
from esault.topology.plan import Plan, UnitPlan

__all__ = ["SubUnitRecord", "Unit"]

#: sub-units that died so soon (seconds) after their start are counted; so many in a row end the topology
SHORT_LIFE, MOST_SHORT_LIVES = 2.0, 10
#: sub-units that died before they were started, in a row
MOST_STILLBORN = 3


@dataclass
class SubUnitRecord:
    """What a unit knows of one of its sub-units."""

    incarnation: int
    #: for a spout, which part it reads; for a bolt, its number among the first ones
    part: int
    #: incarnation of the dead sub-unit whose place in the table it takes
    replaces: int | None = None
    built: Built | None = None
    #: targets it is not yet registered with
    missing: set[str] = field(default_factory=set)
    #: those that came before it was sent its first ones, in order: who left between two of them must be sent END
    tables: list[Table] = field(default_factory=list)
    #: it was sent its first tables
    connected: bool = False
    #: tables that it was sent and has not confirmed: target -> version
    switching: dict[str, int] = field(default_factory=dict)
    #: it is made for a change
    joining: bool = False
    #: a change has taken its ranges away
    leaving: bool = False
    #: targets that have not read its END to the last
    leaving_from: set[str] = field(default_factory=set)
    started_at: float | None = None
    ended: bool = False
    finished: bool = False
    stopped: bool = False
    #: it leaves, and all that its sinks took is part of a complete checkpoint
    committed: bool = False


class Unit:
    """The core of the unit's actor.

    `outbox` holds (address, message): an incarnation, ("unit", name) or "keeper". `events` holds what the driver
    must know: "built", "wired", "seats" (somebody new can be reached), "settled" (a replacement has taken
    over), "finished", and ("failed", text).
    """

    def __init__(self, plan: Plan, unit: UnitPlan, parallelism: int, new_build: Callable[..., Build]) -> None:
        self.plan = unit
        self._plan = plan
        self.name = unit.name
        self.parallelism = parallelism
        self._new_build = new_build
        self.outbox: deque[tuple[Any, Any]] = deque()
        self.events: deque[tuple[str, str]] = deque()
        #: living sub-units by incarnation
        self.subs: dict[int, SubUnitRecord] = {}
        #: when one of them died last, and with checkpoints any of the run
        self.died_at: float | None = None
        self.table: OutputTable | None = None
        #: senders that may send here: incarnation -> (unit, channel number)
        self.senders: dict[int, tuple[str, int]] = {}
        #: who gave keys away, and in which change last: watermarks must not go on there before it knows of that
        self._gave: dict[int, int] = {}
        #: senders that died when their unit was ending, with their channel numbers: newcomers must count them as ended
        self._last: dict[int, int] = {}
        #: sender unit -> successors of its dead that have not registered: until then nothing has ended
        self._expected: dict[str, int] = {}
        self.measurements = Measurements()
        #: (now, parallelism), for the report
        self.history: list[tuple[float, int]] = []
        self.finishing = False
        #: its objects were finished in the checkpoint that it began with
        self.finished_before = False
        self.draining = False
        self.wired = False
        #: all units have been built and learn of each other
        self._wiring = False
        #: tuples flow
        self.going = False
        self._next_number = 1
        #: (data, express) endpoints of all that were built: a table may name a dead one for a while
        self._endpoints: dict[int, tuple[str, str]] = {}
        #: Adds that are not confirmed: sender -> our sub-units that have not answered
        self._adding: dict[int, set[int]] = {}
        #: tables that are not confirmed: sender -> version
        self._switching: dict[int, int] = {}
        #: a table was published because of a death or a broken channel, and not everybody has it
        self._unsettled = False
        #: last committed position by part
        self._position: dict[int, bytes] = {}
        #: rows read so far, and the sub-unit that read first, by part
        self._read: dict[int, int] = {}
        self._source: dict[int, int] = {}
        self._restores: Mapping[int, Restore] = {}
        #: living processes that the first sub-units go on in, by part: sub-units of the life before
        self.reused: Mapping[int, int] = {}
        self._short_lives = 0
        self._stillborn = 0
        #: makes the first table of the first sub-units
        self.first_table: Callable[[list[int]], OutputTable] = OutputTable.even

    # starting --------------------------------------------------------------------------------------

    def start(self, now: float, restores: Mapping[int, Restore] | None = None) -> None:
        """Have the first sub-units forked; `restores` by part: what they begin with."""
        self._restores = restores or {}
        for part in range(self.parallelism):
            self._fork(part, None)
        self.history.append((now, self.parallelism))

    def _fork(self, part: int, replaces: int | None) -> None:
        reused = self.reused.get(part, 0) if replaces is None else 0
        build = self._new_build(
            unit=self.name,
            **({"beside": reused} if reused else {}),
            part=part,
            parts=self.parallelism,
            position=self._position.get(part),
            source=self._source.get(part, 0),
            restore=self._restores.get(part) if replaces is None else None,
        )
        self._source.setdefault(part, build.incarnation)
        self.subs[build.incarnation] = SubUnitRecord(build.incarnation, part, replaces, missing=set(self.plan.targets))
        self.outbox.append(("keeper", Fork(build, reused)))
        if reused:
            self._tell(build.incarnation, build)

    def register(self) -> None:
        """Tell the units it sends to about all sub-units."""
        self._wiring = True
        for target in self.plan.targets:
            self._tell_unit(target, Register(self.name, tuple(self.subs)))
        self._check_wired()

    def go(self, now: float) -> None:
        """Start all sub-units."""
        self.going = True
        for record in list(self.subs.values()):
            if record.replaces is None:
                self._start(record, now)
            else:  # its predecessor died while the run was being wired
                self._check_replacement(record, now)

    def _start(self, record: SubUnitRecord, now: float) -> None:
        record.started_at = now
        self._tell(record.incarnation, Start())
        if self.draining and self.plan.kind == "spout":
            self._tell(record.incarnation, Drain(self._read.get(record.part, 0)))

    def _tell(self, incarnation: int, message: Any) -> None:
        self.outbox.append((incarnation, message))

    def _tell_unit(self, name: str, message: Any) -> None:
        self.outbox.append((("unit", name), message))

    def handle(self, message: Any, now: float) -> bool:
        """Take a message from a sub-unit of ours or from another unit; False if no unit knows it."""
        handler = self._HANDLERS.get(type(message))  # by name, so that a subclass can take part
        if handler is None:
            return False
        getattr(self, handler)(message, now)
        return True

    def _on_built(self, message: Built, now: float) -> None:
        record = self.subs.get(message.incarnation)
        if record is None:
            return
        record.built = message
        self._endpoints[record.incarnation] = (message.endpoint, message.express)
        if record.replaces is not None or record.joining:
            self._introduce(record, now)
        elif self.table is None and all(r.built for r in self.subs.values()):
            self._stillborn = 0
            self.table = self.first_table(list(self.subs))
            self.events.append(("built", ""))

    # senders ---------------------------------------------------------------------------------------

    def _on_register(self, message: Register, now: float) -> None:
        left = self._expected.pop(message.sender, 0) - len(message.incarnations)
        if left > 0:
            self._expected[message.sender] = left
        added = []
        for incarnation in message.incarnations:
            self.senders[incarnation] = (message.sender, self._next_number)
            added.append((incarnation, self._next_number))
            self._next_number += 1
        self._add(tuple(added))

    def _add(self, added: tuple[tuple[int, int], ...]) -> None:
        built = [r.incarnation for r in self.subs.values() if r.built and not r.leaving]
        for incarnation, _ in added:
            self._adding[incarnation] = set(built)
        for incarnation in built:
            self._tell(incarnation, Add(added))
        for incarnation, _ in added:
            self._check_added(incarnation)

    def _on_added(self, message: Added, now: float) -> None:
        adds = self.subs.get(message.incarnation)
        if adds is not None and not self.finishing:
            adds.ended = False  # it had ended as far as it knew; now it knows of more senders
        for sender in message.senders:
            if sender in self._adding:
                self._adding[sender].discard(message.incarnation)
                self._check_added(sender)
        record = self.subs.get(message.incarnation)
        if record is not None:
            self._check_replacement(record, now)

    def _check_added(self, sender: int) -> None:
        if self._adding.get(sender) == set():
            del self._adding[sender]
            unit, _ = self.senders[sender]
            self._tell_unit(unit, Registered(self.name, sender, self._table_for(sender)))

    def _table_for(self, sender: int) -> Table:
        assert self.table is not None
        version, pairs = self.table.snapshot()
        number = self.senders[sender][1]
        peers = {owner: (*self._endpoints[owner], number) for owner in self.table.owners()}
        left = tuple(r.incarnation for r in self.subs.values() if r.leaving)
        gave = {owner: change for owner, change in self._gave.items() if owner in peers}
        return Table(self.name, version, pairs, peers, left, gave=gave)

    def _on_unregister(self, message: Unregister, now: float) -> None:
        entry = self.senders.pop(message.incarnation, None)
        if entry is None:
            return
        if message.last:
            self._last[message.incarnation] = entry[1]
        else:
            self._expected[entry[0]] = self._expected.get(entry[0], 0) + 1
        self._adding.pop(message.incarnation, None)
        self._switching.pop(message.incarnation, None)
        for record in self.subs.values():
            if record.built is not None:
                self._tell(record.incarnation, Gone(message.incarnation, message.last))
        self._check_settled()
        self._check_ended()

    def _on_broken(self, message: Broken, now: float) -> None:
        """Frames between a sender and one of ours are missing: it gets a new channel to each of ours that stays."""
        entry, record = self.senders.get(message.sender), self.subs.get(message.incarnation)
        if entry is None or record is None or self.table is None:
            return
        if record.leaving:
            # Nobody sends to it any more: what it has missed is replayed, to others.
            self._tell(record.incarnation, Gone(message.sender))
            self._unsettled = True
            self._check_settled()
            return
        self.senders[message.sender] = (entry[0], self._next_number)
        self.table.version += 1
        self._switching[message.sender] = self.table.version
        self._unsettled = True
        self._add(((message.sender, self._next_number),))
        self._next_number += 1

    def _publish(self, after_death: bool) -> None:
        """Send the table to all senders that are registered."""
        assert self.table is not None
        self._unsettled = self._unsettled or after_death
        for sender, (unit, _) in self.senders.items():
            if sender not in self._adding:  # else it gets this very table when it is confirmed
                self._switching[sender] = self.table.version
                self._tell_unit(unit, TableFor(sender, self._table_for(sender)))
        self._check_settled()

    def _on_sender_switched(self, message: SenderSwitched, now: float) -> None:
        if message.version >= self._switching.get(message.incarnation, message.version + 1):
            del self._switching[message.incarnation]
            self._check_settled()
            self._check_ended()

    def _check_settled(self) -> None:
        if self._unsettled and not self._switching:
            self._unsettled = False
            self.events.append(("settled", ""))

    # targets ---------------------------------------------------------------------------------------

    def _on_registered(self, message: Registered, now: float) -> None:
        record = self.subs.get(message.incarnation)
        if record is None:
            return
        record.missing.discard(message.target)
        self._take_table(record, message.table)

    def _on_table_for(self, message: TableFor, now: float) -> None:
        record = self.subs.get(message.incarnation)
        if record is not None:
            self._take_table(record, message.table)

    def _take_table(self, record: SubUnitRecord, table: Table) -> None:
        if record.connected:
            record.switching[table.target] = table.version
            self._tell(record.incarnation, table)
            return
        record.tables.append(table)
        if not record.missing:
            record.connected = True
            record.switching = {t.target: t.version for t in record.tables}
            self._tell(record.incarnation, Connect(tuple(record.tables)))
            record.tables = []

    def _on_switched(self, message: Switched, now: float) -> None:
        record = self.subs.get(message.incarnation)
        if record is None:
            return
        if message.version >= record.switching.get(message.target, 0):
            record.switching.pop(message.target, None)
        self._tell_unit(message.target, SenderSwitched(message.incarnation, message.version))
        self._check_wired()
        self._check_replacement(record, now)

    def _check_wired(self) -> None:
        if self.wired or self.table is None:
            return
        if all((r.connected and not r.switching) or not self.plan.targets for r in self.subs.values()):
            self.wired = True
            self.events.append(("wired", ""))

    # the end ---------------------------------------------------------------------------------------

    def drain(self) -> None:
        """Have spouts read no more."""
        self.draining = True
        if self.plan.kind == "spout":
            for record in self.subs.values():
                if record.started_at is not None:
                    self._tell(record.incarnation, Drain())

    def _on_ended(self, message: Ended, now: float) -> None:
        record = self.subs.get(message.incarnation)
        if record is not None:
            record.ended = True
            self._check_ended()

    def _check_ended(self) -> None:
        """All ended, nobody being registered or told of a table: the membership is closed."""
        if self.finishing or self._adding or self._switching or self.changing or self._expected:
            return
        if not self.subs or not all(r.ended for r in self.subs.values()):
            return
        self.finishing = True
        for record in self.subs.values():
            self._tell(record.incarnation, Finish())

    @property
    def unsettled(self) -> bool:
        """Whether senders are being registered or told of a table."""
        return bool(self._unsettled or self._adding or self._switching or self._expected)

    @property
    def changing(self) -> bool:
        """Whether a change is on, or somebody is leaving."""
        return False

    def _on_finished(self, message: Finished, now: float) -> None:
        record = self.subs.get(message.incarnation)
        if record is not None:
            record.finished = True
            self._check_finished()

    def _check_finished(self) -> None:
        if self.finishing and all(r.finished for r in self.subs.values()):
            self.events.append(("finished", ""))

    def stop(self, at_once: bool) -> None:
        """Have all sub-units leave."""
        for record in self.subs.values():
            if record.built is not None and not record.stopped:
                self._tell(record.incarnation, Stop(at_once))

    def _on_stopped(self, message: Stopped, now: float) -> None:
        self.measurements.take(message.status)
        record = self.subs.get(message.incarnation)
        if record is not None:
            record.stopped = True

    @property
    def all_stopped(self) -> bool:
        """Whether every living sub-unit has said its last word."""
        return all(r.stopped or r.built is None for r in self.subs.values())

    @property
    def steady(self) -> bool:
        """Whether it is neither starting nor ending. A newcomer of one that had finished would finish what it gets once more."""
        ending = self.finishing or self.finished_before
        return not ending and self.table is not None and all(r.started_at is not None for r in self.subs.values())

    # measures and deaths ---------------------------------------------------------------------------

    def _on_status(self, message: Status, now: float) -> None:
        record = self.subs.get(message.incarnation)
        if record is None:
            return
        self.measurements.take(message)
        if message.position is not None:
            self._position[record.part] = message.position
        self._read[record.part] = max(message.read, self._read.get(record.part, 0))

    def died(self, incarnation: int, reason: str, now: float) -> None:
        """The process of this sub-unit is gone. It is replaced unless its work was done."""
        record = self.subs.pop(incarnation, None)
        if record is None or record.stopped:
            return
        self.measurements.died(incarnation)
        for target in self.plan.targets:
            self._tell_unit(target, Unregister(incarnation, self.finishing))
        if self.finishing:
            # Its inputs were all done; what it had left to say in finish() is lost with its state.
            self._check_finished()
            return
        if self._dies_too_often(record, reason, now):
            return
        if self.table is None or not self._wiring:
            # The run is being built and nobody knows of the table yet: as if it had not been built at all.
            self.table = None
            self._fork(record.part, None)
        else:
            in_table = record.replaces is None or incarnation in self.table.owners()
            self._fork(record.part, incarnation if in_table else record.replaces)
        for sender in list(self._adding):
            self._adding[sender].discard(incarnation)
            self._check_added(sender)

    def _dies_too_often(self, record: SubUnitRecord, reason: str, now: float) -> bool:
        if record.started_at is None:
            self._stillborn += 1
        else:
            self._stillborn = 0
            self._short_lives = self._short_lives + 1 if now - record.started_at < SHORT_LIFE else 0
        if self._stillborn < MOST_STILLBORN and self._short_lives < MOST_SHORT_LIVES:
            return False
        times = max(self._stillborn, self._short_lives)
        self.events.append(
            (
                "failed",
                f"unit {self.name!r}: its process died {times} times in a row, each time shortly after it was started "
                f"({reason or 'no reason known: look for native code that crashes, or for too little memory'})",
            )
        )
        return True

    def _introduce(self, record: SubUnitRecord, now: float) -> None:
        """Make a replacement known to those it gets from and those it sends to."""
        for sender in self.senders:
            self._adding.setdefault(sender, set()).add(record.incarnation)
        senders = [*((s, number) for s, (_, number) in self.senders.items()), *self._last.items()]
        if senders:
            self._tell(record.incarnation, Add(tuple(senders)))
        for sender in self._last:
            self._tell(record.incarnation, Gone(sender, last=True))
        for target in self.plan.targets:
            self._tell_unit(target, Register(self.name, (record.incarnation,)))
        self._check_replacement(record, now)

    def _introduced(self, record: SubUnitRecord) -> bool:
        """Whether those it gets from and those it sends to know this newcomer, which has not been started."""
        if record.started_at is not None or record.built is None or self.table is None:
            return False
        if any(record.incarnation in waiting for waiting in self._adding.values()):
            return False
        return not self.plan.targets or (record.connected and not record.switching)

    def _check_replacement(self, record: SubUnitRecord, now: float) -> None:
        if record.replaces is None or not self.going or not self._introduced(record):
            return
        self._take_over(record, now)

    def _take_over(self, record: SubUnitRecord, now: float) -> None:
        """A replacement starts, and the senders get a table that names it."""
        assert self.table is not None and record.replaces is not None
        self._start(record, now)
        self.table.replace(record.replaces, record.incarnation)
        self.events.append(("seats", ""))
        self._publish(after_death=True)

    _HANDLERS: ClassVar[dict[type, str]] = {
        Built: "_on_built",
        Register: "_on_register",
        Registered: "_on_registered",
        Unregister: "_on_unregister",
        TableFor: "_on_table_for",
        SenderSwitched: "_on_sender_switched",
        Added: "_on_added",
        Switched: "_on_switched",
        Ended: "_on_ended",
        Finished: "_on_finished",
        Stopped: "_on_stopped",
        Status: "_on_status",
        Broken: "_on_broken",
    }
