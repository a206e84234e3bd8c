"""A unit whose parallelism changes while tuples flow (PROTOCOL section 5; esault.md 3.3 and 3.4).

Every change is a list of moves (range, old owner, new owner) and one new table version. New owners are forked and made
known to everybody first; they hold rows of what they get (`HoldRanges`) before the table is published; old owners carry rows of
what they give (`HandOverRanges`) from then on. What fails before the table is published drops the change; what fails after
it is replaced, and the change goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, ClassVar

from esault.control.units.change import Change
from esault.control.units.parting_unit import PartingUnit
from esault.control.units.unit import SubUnitRecord
from esault.control.units.unit_throttle import UnitThrottle
from esault.errors import UsageError
from esault.messages.change import (
    Cancel,
    HandOverRanges,
    HandOverTo,
    HoldRanges,
    Leave,
    Leaving,
    Left,
    LostOldOwner,
    RangesHandedOver,
    RangesHeld,
    StateInstalled,
)
from esault.messages.change_record import ChangeRecord
from esault.messages.checkpoint import CompletedUnit, Restore
from esault.messages.control import Finish, Finished, Fork, Gone, Kill, Release, Stop, Stopped, Unregister
from esault.routing.table import OutputTable
from esault.routing.table_change import merged, moved, rescaled, split

__all__ = ["ElasticUnit"]


class ElasticUnit(PartingUnit):
    """A unit and the change that is on, if one is."""

    change: Change | None = None
    #: sinks commit with checkpoints
    exactly = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        #: changes that have ended, dropped ones included
        self.changes: list[ChangeRecord] = []
        #: replacements that were sent Get and have not said Ready
        self._readying: set[int] = set()
        self._throttle = UnitThrottle(self.name)

    # wishes ----------------------------------------------------------------------------------------

    @property
    def width(self) -> int:
        """How many sub-units own a part of the ring."""
        return len(self.table.owners()) if self.table is not None else self.parallelism

    def check_change(self, after: int) -> None:
        """Refuse what cannot be. Raises UsageError with one clear line."""
        plan, name = self.plan, self.name
        if plan.kind == "spout":
            raise UsageError(f"unit {name!r} is a spout: its parts are dealt out at the start, it cannot be scaled")
        if plan.objects == "unit" and after != 1:
            raise UsageError(f"unit {name!r} has one object (grouping single): it cannot have {after} sub-units")
        if after < plan.min_parallelism:
            raise UsageError(
                f"unit {name!r} cannot have {after} sub-units: its min_parallelism is {plan.min_parallelism}"
            )
        if plan.max_parallelism is not None and after > plan.max_parallelism:
            raise UsageError(
                f"unit {name!r} cannot have {after} sub-units: its max_parallelism is {plan.max_parallelism}"
            )
        if self.change is not None or any(r.leaving for r in self.subs.values()):
            raise UsageError(f"unit {name!r} is being changed already; try again when that is over")
        if not self.steady:
            raise UsageError(f"unit {name!r} cannot be changed now: it is starting, ending, or has just lost a process")

    def _owner(self, incarnation: int) -> None:
        assert self.table is not None
        if incarnation not in self.table.owners():
            known = ", ".join(map(str, self.table.owners()))
            raise UsageError(f"unit {self.name!r} has no sub-unit {incarnation}; it has {known}")

    def split(self, owner: int, now: float, at: int | None = None, reason: str = "", policy: str = "by hand") -> None:
        """A new sub-unit takes the upper part of the owner's largest interval. Raises UsageError."""
        self.check_change(self.width + 1)
        self._owner(owner)
        table = self.table
        assert table is not None
        self._begin("split", lambda news: split(table, owner, news[0], at), 1, now, reason, policy)

    def merge(self, owner: int, now: float, reason: str = "", policy: str = "by hand") -> None:
        """The owner's intervals join their neighbours', and it leaves. Raises UsageError."""
        self.check_change(self.width - 1)
        self._owner(owner)
        table = self.table
        assert table is not None
        self._begin("merge", lambda news: merged(table, owner), 0, now, reason, policy)

    def move(self, owner: int, now: float, reason: str = "", policy: str = "by hand", host: str | None = None) -> None:
        """A new sub-unit, on that host where one is said, takes all of the owner's place, and it leaves. Raises UsageError."""
        self.check_change(self.width)
        self._owner(owner)
        table = self.table
        assert table is not None
        self._begin("move", lambda news: moved(table, owner, news[0]), 1, now, reason, policy, host)

    def rescale(self, n: int, now: float, reason: str = "", policy: str = "by hand") -> None:
        """So many sub-units with equal shares, in one change. Raises UsageError; as many as there are is no change."""
        if n < 1:
            raise UsageError(f"unit {self.name!r} cannot have {n} sub-units: it needs one at least")
        self.check_change(n)
        table = self.table
        assert table is not None
        owners = table.owners()
        if n == len(owners):
            return
        kept = owners[: min(n, len(owners))]
        self._begin("rescale", lambda news: rescaled(table, [*kept, *news]), n - len(kept), now, reason, policy)

    def adopt(self, after: OutputTable, news: int, now: float, kind: str, reason: str, policy: str) -> None:
        """Any other table: owners below zero stand for new sub-units, -1 the first. Raises UsageError."""
        self.check_change(len(after.owners()))

        def named(incarnations: list[int]) -> OutputTable:
            table = after.copy()
            for i, incarnation in enumerate(incarnations):
                table.replace(-1 - i, incarnation)
            return table

        self._begin(kind, named, news, now, reason, policy)

    # throttling --------------------------------------------------------------------------------------

    def throttle(self, rate: float, seconds: float, now: float) -> None:
        """Process (a spout: read) `rate` tuples a second at most, all sub-units together, for so many seconds. Raises UsageError."""
        self._throttle.set(rate, seconds, now)
        self._share_rate(now)

    def unthrottle(self, now: float) -> None:
        """As fast as it can, from now on."""
        if self._throttle.on(now):
            self._throttle.lift()
            self._share_rate(now)

    def _share_rate(self, now: float) -> None:
        """Tell each that works what its share is; those that leave still work off what they have."""
        working = [r for r in self.subs.values() if r.started_at is not None and not r.joining and not r.stopped]
        for record in working:
            self._tell(record.incarnation, self._throttle.share(len(working), now))

    def _start(self, record: SubUnitRecord, now: float) -> None:
        super()._start(record, now)
        if self._throttle.on(now):
            self._share_rate(now)

    # the change --------------------------------------------------------------------------------------

    def _begin(
        self,
        kind: str,
        table_of: Callable[[list[int]], OutputTable],
        news: int,
        now: float,
        reason: str,
        policy: str,
        host: str | None = None,
    ) -> None:
        assert self.table is not None
        made = [self._fork_joining(host) for _ in range(news)]
        table = table_of(made)
        table.version = self.table.version
        self.change = Change(kind, table, self.table.moves_to(table), set(made), now, reason, policy, before=self.width)
        self._check_joined(now)

    def _fork_joining(self, host: str | None) -> int:
        where = {} if host is None else {"on": host}
        build = self._new_build(unit=self.name, part=len(self.subs), parts=self.parallelism, **where)
        self.subs[build.incarnation] = SubUnitRecord(
            build.incarnation, build.part, joining=True, missing=set(self.plan.targets)
        )
        self.outbox.append(("keeper", Fork(build)))
        return build.incarnation

    def _check_replacement(self, record: SubUnitRecord, now: float) -> None:
        if record.joining:
            if self._introduced(record):
                self._start(record, now)
                self.events.append(("seats", ""))
            self._check_joined(now)
        else:
            super()._check_replacement(record, now)

    @property
    def keyed(self) -> bool:
        """Whether rows and state move: by key, or all of them."""
        return self.plan.objects == "unit" or any(i.grouping.promises.keyed for i in self.plan.inputs)

    def _check_joined(self, now: float) -> None:
        """All new owners are started and known: have those who get ranges hold their rows."""
        change = self.change
        if change is None or change.phase != "forking":
            return
        if not all(n in self.subs and self.subs[n].started_at is not None for n in change.news):
            return
        change.phase = "readying"
        change.waiting = change.new_owners if self.keyed else set()
        for new_owner in change.waiting:
            self._send_hold(new_owner, change)
        self._check_ready(now)

    def _version(self) -> int:
        assert self.change is not None
        return self.change.table.version + 1

    def _send_hold(self, new_owner: int, change: Change) -> None:
        old_owners = change.giving if change.phase == "moving" else change.old_owners
        moves = tuple((m.low, m.high, m.old) for m in change.moves if m.new == new_owner and m.old in old_owners)
        olds = {old: self._endpoints[old][1] for _, _, old in moves}
        # All that comes to a newcomer is of its new ranges: it need not look where each key belongs.
        fresh = new_owner in change.news and change.old_owners_of(new_owner) == set(olds) and len(olds) == 1
        self._tell(new_owner, HoldRanges(self._version(), moves, olds, self.plan.objects == "unit" or fresh))

    def _on_ready(self, message: RangesHeld, now: float) -> None:
        change = self.change
        if change is None or message.version != self._version():
            return
        if change.phase == "readying":
            change.waiting.discard(message.incarnation)
            self._check_ready(now)
        elif message.incarnation in self._readying:
            self._readying.discard(message.incarnation)
            record = self.subs.get(message.incarnation)
            if record is not None:
                super()._take_over(record, now)
                for old_owner in change.giving:
                    if old_owner in self.subs and record.replaces is not None:
                        express = self._endpoints[record.incarnation][1]
                        self._tell(old_owner, HandOverTo(self._version(), record.replaces, record.incarnation, express))

    def _check_ready(self, now: float) -> None:
        change = self.change
        if change is None or change.phase != "readying" or change.waiting or self._adding:
            return  # a sender that is being registered is confirmed first: it would not be waited for else
        assert self.table is not None
        version = self._version()
        change.phase = "moving"
        change.published_at = now
        # A sender whose channel broke meanwhile has had that version already: it would take no other table for it.
        published = max(version, self.table.version + 1)
        self.table = change.table.copy()
        self.table.version = published
        owners = set(self.table.owners())
        ended: list[int] = []
        for record in self.subs.values():
            record.leaving = record.incarnation not in owners and not record.joining
            if record.leaving:
                self._tell(record.incarnation, Leave())
            if record.leaving and record.ended:  # it had ended before it knew; it gives first
                ended.append(record.incarnation)
        for incarnation in change.news:
            self.subs[incarnation].joining = False
        if self._throttle.on(now):
            self._share_rate(now)
        senders = tuple(self.senders)
        if self.keyed and self.plan.watermarks:
            self._gave.update(dict.fromkeys(change.old_owners, version))
        self._publish(after_death=False)
        if self.keyed:
            change.waiting, change.giving = change.new_owners, change.old_owners
            for old_owner in change.old_owners:
                moves = tuple((m.low, m.high, m.new) for m in change.moves if m.old == old_owner)
                news = {new: self._endpoints[new][1] for _, _, new in moves}
                # Who gives all it has to one other need not look where each key belongs.
                everything = self.plan.objects == "unit" or (old_owner not in owners and len(news) == 1)
                self._tell(old_owner, HandOverRanges(version, moves, news, senders, everything))
        for incarnation in ended:
            self._tell(incarnation, Finish(leaving=True))
        self._check_done(now)

    def _on_installed(self, message: StateInstalled, now: float) -> None:
        change = self.change
        if change is not None and message.version == self._version():
            change.waiting.discard(message.incarnation)
            change.held = max(change.held, message.held)
            self._check_done(now)

    def _on_given(self, message: RangesHandedOver, now: float) -> None:
        change = self.change
        if change is not None and message.version == self._version():
            change.giving.discard(message.incarnation)
            for move in change.moves:
                if move.old == message.incarnation and move.new in change.waiting and move.new not in message.news:
                    # It was done with the predecessor of this new owner before it heard of the death.
                    self._tell(move.new, LostOldOwner(self._version(), message.incarnation))
            change.moved_keys += message.moved_keys
            change.moved_bytes += message.moved_bytes
            self._check_done(now)

    def _check_done(self, now: float) -> None:
        change = self.change
        if change is None or change.phase != "moving" or change.waiting or change.giving or self._switching:
            return
        self.change = None
        self.changes.append(change.record(self.name, now, self.width))
        self.history.append((now, self.width))
        self.events.append(("changed", ""))
        self._check_ended()

    def _check_settled(self) -> None:
        super()._check_settled()
        change = self.change
        if change is not None and change.phase == "moving":
            self.events.append(("check", ""))

    def check(self, now: float) -> None:
        """Something that a change may wait for has happened."""
        self._check_ready(now)
        self._check_done(now)

    def _check_added(self, sender: int) -> None:
        if self._adding.get(sender) == set() and sender not in self._tabled:
            self._tabled.add(sender)
            for record in self.subs.values():
                if record.leaving:  # its first table does not name them: no END will come from it
                    self._tell(record.incarnation, Gone(sender))
        super()._check_added(sender)
        if self.change is not None:
            self.events.append(("check", ""))

    def _on_unregister(self, message: Unregister, now: float) -> None:
        super()._on_unregister(message, now)
        self._tabled.discard(message.incarnation)
        self._parting.discard(message.incarnation)
        self._ends.pop(message.incarnation, None)
        if self.change is not None:  # it may have waited for this sender
            self.events.append(("check", ""))

    def _drop(self, why: str, now: float) -> None:
        """Nobody knows of the table yet: as if nothing had been wished for."""
        change = self.change
        assert change is not None
        self.change = None
        assert self.table is not None
        self.table.version += 1  # so that no late answer is taken for one to the next change
        for new_owner in change.new_owners - change.news:
            self._tell(new_owner, Cancel(change.table.version + 1))
        for incarnation in change.news:
            if self.subs.pop(incarnation, None) is not None:
                self._forget(incarnation)
                self.outbox.append(("keeper", Kill(incarnation)))
        self.changes.append(change.record(self.name, now, self.width, dropped=why))
        self.events.append(("changed", ""))

    def _forget(self, incarnation: int) -> None:
        """A newcomer is gone before it did anything."""
        for target in self.plan.targets:
            self._tell_unit(target, Unregister(incarnation, last=True))
        self._no_longer_asked(incarnation)

    # going back --------------------------------------------------------------------------------------

    def ranges_by_part(self) -> dict[int, tuple[tuple[int, int], ...]]:
        """The ranges that each of the first sub-units will have, by part."""
        parts = list(range(self.parallelism))
        if self.plan.kind == "spout":
            return dict.fromkeys(parts, ())
        table = self.first_table(parts)
        return {part: tuple(table.ranges(part)) for part in parts}

    def begin_from(self, kept: CompletedUnit, number: int, now: float) -> None:
        """Start with the state of a checkpoint."""
        self.finished_before = kept.finished
        self._position = dict(kept.positions)
        self._source.update(kept.sources)
        restores = {
            part: Restore(number, kept.chains, ranges, kept.finished) for part, ranges in self.ranges_by_part().items()
        }
        self.start(now, restores)

    @property
    def sources(self) -> dict[int, int]:
        """The first sub-unit that read a part of the source."""
        return dict(self._source)

    @property
    def spared(self) -> dict[int, int]:
        """Sub-units whose processes go on when all go back, by part: their sources would not give the same once more."""
        if not self.plan.spooled:
            return {}
        # One that has just been told to go on as another sub-unit lives, although it has not said so yet.
        return {
            r.part: i for i, r in self.subs.items() if (r.built is not None or r.part in self.reused) and not r.stopped
        }

    def successor(self, now: float) -> ElasticUnit:
        """The same unit in its next life: as many sub-units, with the same shares of the ring; nothing of its state."""
        width = self.parallelism if self.plan.kind == "spout" else self.width
        made = ElasticUnit(self._plan, self.plan, width, self._new_build)
        made.exactly = self.exactly
        made._throttle = self._throttle
        made.reused = self.spared
        made.changes, made.history, made.draining = self.changes, self.history, self.draining
        made._read, made._source = self._read, self._source
        made.measurements, made.died_at = self.measurements, now
        for incarnation in self.subs:
            made.measurements.died(incarnation, state_too=False)
        if self.change is not None:
            made.changes.append(self.change.record(self.name, now, self.width, dropped="all went back to a checkpoint"))
        if self.table is not None and self.plan.kind != "spout":
            pairs, owners = self.table.snapshot()[1], self.table.owners()
            version = self.table.version

            def table(subs: list[int]) -> OutputTable:
                new = dict(zip(owners, subs))
                return OutputTable([(start, new[owner]) for start, owner in pairs], version + 1)

            made.first_table = table
        return made

    # leaving -----------------------------------------------------------------------------------------

    @property
    def changing(self) -> bool:
        return self.change is not None or any(r.leaving for r in self.subs.values())

    def _on_ended(self, message: Any, now: float) -> None:
        record = self.subs.get(message.incarnation)
        if record is not None and record.leaving and not self.finishing:
            record.ended = True
            self._tell(record.incarnation, Finish(leaving=True))
            return
        super()._on_ended(message, now)

    def _on_finished(self, message: Finished, now: float) -> None:
        record = self.subs.get(message.incarnation)
        if record is None or not record.leaving:
            super()._on_finished(message, now)
            return
        record.finished = True
        record.leaving_from = set(self.plan.targets)
        for target in self.plan.targets:
            self._tell_unit(target, Leaving(message.incarnation))
        self._check_left(record)

    def _check_left(self, record: SubUnitRecord) -> None:
        if record.leaving and record.finished and not record.leaving_from and not self._waits(record):
            self._tell(record.incarnation, Stop())

    def _waits(self, record: SubUnitRecord) -> bool:
        """Whether its sinks hold rows that the next checkpoint will commit."""
        return self.exactly and not record.committed and bool(self.plan.sinks)

    @property
    def wants_checkpoint(self) -> bool:
        """Whether somebody that leaves waits for one."""
        return any(r.leaving and r.finished and not r.leaving_from and self._waits(r) for r in self.subs.values())

    def checkpointed(self, finished: Collection[int]) -> None:
        """A checkpoint is complete, of which these sub-units were part after they had finished."""
        for record in list(self.subs.values()):
            if record.leaving and record.incarnation in finished:
                record.committed = True
                self._check_left(record)

    def _on_left(self, message: Left, now: float) -> None:
        record = self.subs.get(message.incarnation)
        if record is not None:
            record.leaving_from.discard(message.target)
            self._check_left(record)

    def _on_stopped(self, message: Stopped, now: float) -> None:
        record = self.subs.get(message.incarnation)
        if record is None or not record.leaving or self.finishing:
            super()._on_stopped(message, now)
            return
        del self.subs[message.incarnation]
        self.measurements.left(message.status)
        self.outbox.append(("keeper", Release(message.incarnation)))
        self.events.append(("seats", ""))
        if self._throttle.on(now):
            self._share_rate(now)
        self._no_longer_asked(message.incarnation)
        self._check_ended()

    def _no_longer_asked(self, incarnation: int) -> None:
        """It is gone: nobody waits for its answers, or asks for the way to it."""
        if self.change is None and self.table is not None:
            named = {*self.subs, *self.table.owners()}
            self._endpoints = {i: endpoints for i, endpoints in self._endpoints.items() if i in named}
        for readers in self._ends.values():
            readers.discard(incarnation)
        for sender in list(self._adding):
            self._adding[sender].discard(incarnation)
            self._check_added(sender)
        for sender in list(self._parting):
            self._check_parting(sender)

    @property
    def all_copies(self) -> Sequence[ElasticUnit]:
        """The active replicas of this unit, itself included; it alone where it has none."""
        return (self,)

    def ended_here(self, incarnation: int) -> bool:
        """Whether this unit had a process ended, to make another one in its place."""
        return False

    # deaths ------------------------------------------------------------------------------------------

    def died(self, incarnation: int, reason: str, now: float) -> None:
        change = self.change
        record = self.subs.get(incarnation)
        if record is None or record.stopped:
            return
        self.died_at = now
        if change is not None and change.phase != "moving":
            if incarnation in change.news:
                self.subs.pop(incarnation)
                self._forget(incarnation)
            self._drop(f"{self.name}/{incarnation} died", now)
            if record.joining:
                return
        if record.leaving and not self.finishing:
            # Its ranges are others' already; what it had not handed over is replayed.
            self.subs.pop(incarnation)
            self.measurements.died(incarnation)
            self._forget(incarnation)
            self._unsettled = True
            self._check_settled()
        else:
            super().died(incarnation, reason, now)
        if change is not None and change.phase == "moving":
            self._death_while_moving(incarnation, record, change, now)
        self._no_longer_asked(incarnation)
        self._check_ended()

    def _death_while_moving(self, dead: int, record: SubUnitRecord, change: Change, now: float) -> None:
        self._readying.discard(dead)
        if dead in change.giving:
            change.giving.discard(dead)
            for new_owner in change.waiting:
                if any(m.new == new_owner and m.old == dead for m in change.moves):
                    self._tell(new_owner, LostOldOwner(self._version(), dead))
        successor = next((r.incarnation for r in self.subs.values() if r.replaces == dead), None)
        if successor is None and record.replaces is not None:
            successor = next((r.incarnation for r in self.subs.values() if r.replaces == record.replaces), None)
        if dead in change.waiting:
            if successor is None:
                change.waiting.discard(dead)
            else:
                change.rename(dead, successor)
        self._check_done(now)

    def _take_over(self, record: SubUnitRecord, now: float) -> None:
        """In a change, a replacement holds rows before anyone sends to it."""
        change = self.change
        if change is not None and change.phase == "moving" and record.incarnation in change.waiting:
            if record.incarnation not in self._readying:
                self._readying.add(record.incarnation)
                self._send_hold(record.incarnation, change)
            return
        super()._take_over(record, now)

    _HANDLERS: ClassVar[dict[type, str]] = {
        **PartingUnit._HANDLERS,
        RangesHeld: "_on_ready",
        StateInstalled: "_on_installed",
        RangesHandedOver: "_on_given",
        Left: "_on_left",
    }
