"""Splits of a source in a spout's sub-unit: it reads those that its unit assigns to it, and gives back those that are to go elsewhere."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import replace
from functools import partial
from typing import Any

from esault.flow.operators.user_error import UserError
from esault.flow.worker.split_readers import Place
from esault.flow.worker.spout_unit import SpoutSubUnit
from esault.messages.change import Leave
from esault.messages.checkpoint import Abandon, Checkpoint, Completed
from esault.messages.control import Drain
from esault.messages.splits import (
    AssignedSplit,
    AssignSplits,
    DiscoverSplits,
    ExpectSplits,
    NoMoreSplits,
    RevokeSplits,
    SplitPlace,
    SplitsEnded,
    SplitsFound,
    SplitsRevoked,
)
from esault.topology.split_source import SplitSource
from esault.topology.spout import Spout

__all__ = ["SourceSplits"]

#: seconds until a source that does not know its splits yet is asked again
_AGAIN = 0.1


class SourceSplits:
    """A part of a spout's sub-unit whose source is read in splits.

    What is assigned while a checkpoint is on is opened behind the cut: where it was before, it stood before the cut. What is revoked
    goes on elsewhere once all that was read of it here is processed: so no split is read by two, and its rows stay in order.
    """

    def __init__(self, unit: SpoutSubUnit) -> None:
        source, spout, opened = unit.plan.spout, unit.reading, unit.outputs.splits
        assert isinstance(source, SplitSource) and spout.splits is not None and opened is not None
        self._unit = unit
        self._spout = spout
        self._splits_of = source
        self._splits = spout.splits
        unit.source = unit.plan.name
        self._open_splits = opened
        self._work, unit.work = unit.work, self.work
        unit.checkpoints.snap = self._snap
        handlers = unit.handlers
        handlers |= {
            AssignSplits: [self._on_order],
            RevokeSplits: [self._on_order],
            DiscoverSplits: [self._on_discover],
            ExpectSplits: [self._on_expect],
            NoMoreSplits: [self._on_no_more],
            Drain: [self._on_drain],
        }
        handlers[Leave].append(self._on_leave)
        handlers[Checkpoint].insert(0, self._open_before_cut)
        handlers[Abandon].append(self._open_before_cut)
        handlers[Completed].insert(0, self._on_cut_known)
        handlers[Completed].append(self._on_completed)
        #: how often the unit has assigned splits
        self.assigned = 0
        #: splits that are over for the checkpoint that is told of
        self._ended_before_cut: list[str] = []
        #: what the unit has said and has not been done
        self._orders: deque[AssignSplits | RevokeSplits] = deque()
        self._revoked: list[RevokeSplits] = []
        #: hand-overs with which splits will come
        self._expected: set[int] = set()
        #: those that the unit knows to have ended: with checkpoints they stay until one says so
        self._over: set[str] = set()
        self._discover_at = math.inf
        self._found: tuple[str, ...] | None = None
        #: there should be some
        self._first = False
        #: all splits of this sub-unit go elsewhere, and it ends
        self._gives_all = False

    @property
    def _committed(self) -> dict[str, Place]:
        committed: tuple[dict[str, Place], int] | None = self._unit.roots.committed
        return {} if committed is None else committed[0]

    def work(self, now: float) -> bool:
        """Do as the unit has said, read, and tell the unit what is over."""
        if self._unit.reader.alignment.number is None and not self._unit.halted:
            self._obey(now)
            if now >= self._discover_at:
                self._discover(now)
        if self._gives_all and not self._orders and not self._splits.position():
            self._splits.over = True
        worked = self._work(now)
        if not self._unit.halted:
            self._give(now)
            self._tell_ended()
        return worked

    # splits that come --------------------------------------------------------------------------

    def _obey(self, now: float) -> None:
        while self._orders:
            message = self._orders.popleft()
            if isinstance(message, RevokeSplits):
                for id in message.ids:
                    self._splits.rest(id)
                self._revoked.append(message)
                continue
            for split in message.splits:
                position, rows, *times = (
                    (None, 0) if split.position is None else self._unit.codec.unpack(split.position)
                )
                add = partial(self._splits.add, replace(split, times=split.times or tuple(*times)), position, rows)
                self._spout.call(add, f"open_split({split.id!r})")
            self._open_splits.begin_past(message.past)
            self._open_splits.dealt = True
            self.assigned += 1
            if self._unit.catching_up is not None:
                self._unit.catching_up.again()
            self._expected.discard(message.handover)
            if message.handover and not self._expected and self._unit.watermarks is not None:
                self._unit.watermarks.took_splits()
            self._unit.pace.at = 0.0

    def _discover(self, now: float) -> None:
        source = self._splits_of
        every = source.discovery_interval
        self._discover_at = math.inf if every is None else now + every
        found = self._spout.call(source.splits, "splits")
        if found is None:
            self._discover_at = now + _AGAIN
            return
        if isinstance(found, str) or not all(isinstance(id, str) for id in found):
            raise UserError(
                f"unit {self._unit.plan.name!r}: {type(source).__name__}.splits must return the names of splits, each a str, got {found!r}"
            )
        ids = tuple(dict.fromkeys(found))
        if not ids and self._first and (every is None or type(source).pieces is not Spout.pieces):
            self._spout.call(source.check, "check")  # what was there where the command is may not be on this host
        self._first = False
        if ids != self._found:
            self._found = ids
            self._unit.outbox.append(SplitsFound(self._unit.incarnation, ids, every is None))

    # splits that go ----------------------------------------------------------------------------

    def _give(self, now: float) -> None:
        committed = self._committed
        for message in list(self._revoked):
            here = [id for id in message.ids if id in self._splits]
            if not all(self._splits.is_done(id, committed) for id in here):
                continue
            self._revoked.remove(message)
            given = []
            for id in here:
                position, rows, ended = self._splits.position()[id]
                if ended:
                    continue
                packed = self._unit.codec.pack_value((position, rows))
                caught_up = self._spout.call(partial(self._splits.has_caught_up, id), "caught_up")
                times = self._spout.call(partial(self._splits.forget, id), "close")
                given.append(AssignedSplit(id, packed, times=times, caught_up=caught_up))
            if self._unit.watermarks is not None:
                self._unit.watermarks.gave_splits(message.handover, message.to, now)
            self._unit.outbox.append(SplitsRevoked(self._unit.incarnation, tuple(given), message.handover))

    def _tell_ended(self) -> None:
        committed = self._committed
        over = [id for id in self._splits.ended if id not in self._over and self._splits.is_done(id, committed)]
        if not over:
            return
        self._unit.outbox.append(SplitsEnded(self._unit.incarnation, tuple(over)))
        self._over.update(over)
        if not self._unit.exactly:
            self._commit_splits()
            self._forget(over)

    def _commit_splits(self) -> None:
        if self._unit.roots.committed is not self._unit.told:
            self._unit.told = self._unit.roots.committed
            self._spout.commit(self._committed)

    def _forget(self, ids: list[str]) -> None:
        for id in ids:
            self._over.discard(id)
            self._spout.call(partial(self._splits.forget, id), "close")

    # messages ----------------------------------------------------------------------------------

    def _on_order(self, message: AssignSplits | RevokeSplits) -> None:
        self._orders.append(message)
        self._unit.pace.at = 0.0

    def _on_expect(self, message: ExpectSplits) -> None:
        self._expected.add(message.handover)
        if self._unit.watermarks is not None:
            self._unit.watermarks.expect_splits(message.handover, self._unit.clock())

    def _on_discover(self, message: DiscoverSplits) -> None:
        self._discover_at, self._found, self._first = 0.0, None, message.first

    def _on_no_more(self, message: NoMoreSplits) -> None:
        self._splits.over = True
        self._unit.pace.at = 0.0

    def _on_leave(self, message: Leave) -> None:
        self._gives_all, self._discover_at = True, math.inf
        self._unit.pace.at = 0.0

    def _on_drain(self, message: Drain) -> None:
        self._unit.draining, self._unit.waits = True, False
        self._splits.drain()
        self._unit.pace.at = 0.0

    @property
    def drained(self) -> bool:
        """True when a drain has nothing left to read."""
        return self._splits.drained and not self._orders

    def _open_before_cut(self, message: Checkpoint | Abandon) -> None:
        """Open what was assigned before the checkpoint was begun."""
        try:
            self._obey(self._unit.clock())
        except UserError as error:
            self._unit.fail(str(error), error)

    def _on_cut_known(self, message: Completed) -> None:
        cut: dict[str, Place] = self._unit.cuts.get(message.number, {})
        self._ended_before_cut = [id for id in self._over if id in cut and cut[id][2]]

    def _on_completed(self, message: Completed) -> None:
        try:
            self._forget(self._ended_before_cut)
        except UserError as error:
            self._unit.fail(str(error), error)

    def wake_at(self) -> float:
        """Return when the source is asked for its splits next."""
        unit = self._unit
        return self._discover_at if unit.lifecycle.phase.works and not unit.outputs.blocked else math.inf

    # checkpoints and reports -------------------------------------------------------------------

    def _snap(self, number: int, sure: bool) -> None:
        cut: dict[str, Any] = self._splits.position()
        self._unit.cuts[number] = cut
        self._unit.checkpoints.snapped(number, splits={id: self._packed(id, place) for id, place in cut.items()})

    def _packed(self, id: str, place: Place) -> SplitPlace:
        position, rows, ended = place
        if ended:
            return SplitPlace(b"", True, self._open_splits.past_times())
        times = self._open_splits.times(id)
        return SplitPlace(self._unit.codec.pack_value((position, rows, times) if times else (position, rows)))

    def safe(self) -> tuple[AssignedSplit, ...]:
        """Return where each split goes on should this sub-unit die."""
        committed = self._committed
        told = []
        for id, place in self._splits.position().items():
            safe = self._splits.safe(id, committed)
            packed, later = self._unit.codec.pack_value(safe[:2]), id not in self._splits.awaited
            told.append(AssignedSplit(id, packed, place[1], caught_up=later))
        return tuple(told)
