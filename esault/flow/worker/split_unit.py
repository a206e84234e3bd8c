"""The sub-unit of a source of splits: it reads those that its unit assigns to it, and gives back those that are to go elsewhere."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from esault.flow.operators.user_error import UserError
from esault.flow.worker.environment import Environment
from esault.flow.worker.split_readers import Place
from esault.flow.worker.spout_unit import SpoutSubUnit
from esault.messages.change import Leave
from esault.messages.checkpoint import Abandon, Checkpoint, Completed
from esault.messages.control import Build, Drain
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
from esault.messages.status import Status
from esault.topology.plan import UnitPlan
from esault.topology.split_source import SplitSource

__all__ = ["SplitSubUnit"]

#: seconds until a source that does not know its splits yet is asked again
_AGAIN = 0.1


class SplitSubUnit(SpoutSubUnit):
    """A sub-unit of a spout whose source is read in splits.

    What is assigned while a checkpoint is on is opened behind the cut: where it was before, it stood before the cut. What is revoked
    goes on elsewhere once all that was read of it here is processed: so no split is read by two, and its rows stay in order.
    """

    def __init__(self, build: Build, plan: UnitPlan, environment: Environment) -> None:
        super().__init__(build, plan, environment)
        assert (
            isinstance(plan.spout, SplitSource) and self._spout.splits is not None and self.outputs.splits is not None
        )
        self._splits_of = plan.spout
        self._splits = self._spout.splits
        self._open_splits = self.outputs.splits
        self._source = plan.name
        #: what the unit has said and has not been done
        self._orders: deque[AssignSplits | RevokeSplits] = deque()
        self._revoked: list[RevokeSplits] = []
        #: hand-overs with which splits will come
        self._expected: set[int] = set()
        #: those that the unit knows to have ended: with checkpoints they stay until one says so
        self._over: set[str] = set()
        self._discover_at = math.inf
        self._found: tuple[str, ...] | None = None
        #: all splits of this sub-unit go elsewhere, and it ends
        self._gives_all = False

    @property
    def _committed(self) -> dict[str, Place]:
        committed: tuple[dict[str, Place], int] | None = self.roots.committed
        return {} if committed is None else committed[0]

    def _work(self, now: float) -> bool:
        if self.reader.alignment.number is None and not self.halted:
            self._obey(now)
            if now >= self._discover_at:
                self._discover(now)
        if self._gives_all and not self._orders and not self._splits.position():
            self._splits.over = True
        worked = super()._work(now)
        if not self.halted:
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
                position, rows, *times = (None, 0) if split.position is None else self.codec.unpack(split.position)
                add = partial(self._splits.add, replace(split, times=split.times or tuple(*times)), position, rows)
                self._spout.call(add, f"open_split({split.id!r})")
            self._open_splits.begin_past(message.past)
            self._open_splits.dealt = True
            self._expected.discard(message.handover)
            if message.handover and not self._expected and self.watermarks is not None:
                self.watermarks.took_splits()
            self._pace.at = 0.0

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
                f"unit {self.plan.name!r}: {type(source).__name__}.splits must return the names of splits, each a str, got {found!r}"
            )
        ids = tuple(dict.fromkeys(found))
        if ids != self._found:
            self._found = ids
            self.outbox.append(SplitsFound(self.incarnation, ids, every is None))

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
                packed = self.codec.pack_value((position, rows))
                times = self._spout.call(partial(self._splits.forget, id), "close")
                given.append(AssignedSplit(id, packed, times=times))
            if self.watermarks is not None:
                self.watermarks.gave_splits(message.handover, message.to, now)
            self.outbox.append(SplitsRevoked(self.incarnation, tuple(given), message.handover))

    def _tell_ended(self) -> None:
        committed = self._committed
        over = [id for id in self._splits.ended if id not in self._over and self._splits.is_done(id, committed)]
        if not over:
            return
        self.outbox.append(SplitsEnded(self.incarnation, tuple(over)))
        self._over.update(over)
        if not self._exactly:
            self._commit_splits()
            self._forget(over)

    def _commit_splits(self) -> None:
        if self.roots.committed is not self._told:
            self._told = self.roots.committed
            self._spout.commit(self._committed)

    def _forget(self, ids: list[str]) -> None:
        for id in ids:
            self._over.discard(id)
            self._spout.call(partial(self._splits.forget, id), "close")

    # messages ----------------------------------------------------------------------------------

    def _on_order(self, message: AssignSplits | RevokeSplits) -> None:
        self._orders.append(message)
        self._pace.at = 0.0

    def _on_expect(self, message: ExpectSplits) -> None:
        self._expected.add(message.handover)
        if self.watermarks is not None:
            self.watermarks.expect_splits(message.handover, self.clock())

    def _on_discover(self, message: DiscoverSplits) -> None:
        self._discover_at, self._found = 0.0, None

    def _on_no_more(self, message: NoMoreSplits) -> None:
        self._splits.over = True
        self._pace.at = 0.0

    def _on_leave(self, message: Leave) -> None:
        super()._on_leave(message)
        self._gives_all, self._discover_at = True, math.inf
        self._pace.at = 0.0

    def _on_drain(self, message: Drain) -> None:
        self.draining = True
        self._splits.drain()
        self._pace.at = 0.0

    @property
    def _drained(self) -> bool:
        return self.draining and self._splits.drained and not self._orders

    def _on_checkpoint(self, message: Checkpoint) -> None:
        self._open_before_cut()
        super()._on_checkpoint(message)

    def _on_abandon(self, message: Abandon) -> None:
        super()._on_abandon(message)
        self._open_before_cut()

    def _open_before_cut(self) -> None:
        """Open what was assigned before the checkpoint was begun."""
        try:
            self._obey(self.clock())
        except UserError as error:
            self._fail(str(error), error)

    def _on_completed(self, message: Completed) -> None:
        cut: dict[str, Place] = self._cuts.get(message.number, {})
        super()._on_completed(message)
        try:
            self._forget([id for id in self._over if id in cut and cut[id][2]])
        except UserError as error:
            self._fail(str(error), error)

    _HANDLERS: ClassVar[dict[type, str]] = {
        **SpoutSubUnit._HANDLERS,
        AssignSplits: "_on_order",
        RevokeSplits: "_on_order",
        DiscoverSplits: "_on_discover",
        ExpectSplits: "_on_expect",
        NoMoreSplits: "_on_no_more",
    }

    def wake_at(self) -> float:
        at = super().wake_at()
        return min(at, self._discover_at) if self.lifecycle.phase.works and not self.outputs.blocked else at

    # checkpoints and reports -------------------------------------------------------------------

    def _snap(self, number: int, sure: bool) -> None:
        cut: dict[str, Any] = self._splits.position()
        self._cuts[number] = cut
        self.checkpoints.snapped(number, splits={id: self._packed(id, place) for id, place in cut.items()})

    def _packed(self, id: str, place: Place) -> SplitPlace:
        position, rows, ended = place
        if ended:
            return SplitPlace(b"", True, self._open_splits.past_times())
        times = self._open_splits.times(id)
        return SplitPlace(self.codec.pack_value((position, rows, times) if times else (position, rows)))

    def _safe_position(self) -> bytes | None:
        return None

    def _safe_splits(self) -> tuple[AssignedSplit, ...]:
        committed = self._committed
        told = []
        for id, place in self._splits.position().items():
            safe = self._splits.safe(id, committed)
            told.append(AssignedSplit(id, self.codec.pack_value(safe[:2]), place[1]))
        return tuple(told)

    def status(self) -> Status:
        status = super().status()
        return status if self._exactly else replace(status, splits=self._safe_splits())
