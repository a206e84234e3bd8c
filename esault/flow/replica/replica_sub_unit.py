"""A sub-unit of one replica of a bolt: beyond what others do, it brings another replica up to date."""

from __future__ import annotations

from typing import ClassVar

from esault.errors import FrameError, TopologyError
from esault.flow.channel.frame import FETCH, GOT, Frame
from esault.flow.handover.copying import Copying
from esault.flow.operators.object_operator import ObjectOperator
from esault.flow.worker.bolt_unit import BoltSubUnit
from esault.flow.worker.environment import Environment
from esault.messages.control import Build
from esault.messages.replicas import Copy, CopyOver, CopyReady
from esault.topology.plan import UnitPlan
from esault.topology.replicas import has_finish

__all__ = ["ReplicaSubUnit"]


class ReplicaSubUnit(BoltSubUnit):
    """A sub-unit that processes as any bolt does; its marks are not those of checkpoints."""

    def __init__(self, build: Build, plan: UnitPlan, environment: Environment) -> None:
        super().__init__(build, plan, environment)
        if isinstance(self.operator, ObjectOperator) and has_finish(type(self.operator.object)):
            raise TopologyError(
                f"unit {plan.original!r}: its bolt defines finish() and comes by shuffle(), which does not go together with "
                "replicas; group it by_key(), or leave finish out"
            )
        #: the request for state that is on: a new sub-unit of another replica is to get it
        self._request: Copy | None = None
        self._copying: Copying | None = None
        self.reader.read_change = self._read_change

    def _on_copy(self, message: Copy) -> None:
        self._request = message
        self.outbox.append(CopyReady(self.incarnation, message.number))

    def _on_copy_over(self, message: CopyOver) -> None:
        number = message.number
        if self._request is not None and self._request.number <= number:
            self._request = None
        if self._copying is not None and self._copying.number <= number:
            self._copying = self.writer.snapshot = None
        self.reader.abandon(number)

    _HANDLERS: ClassVar[dict[type, str]] = {**BoltSubUnit._HANDLERS, Copy: "_on_copy", CopyOver: "_on_copy_over"}

    def _cut(self, now: float) -> None:
        """Begin to copy state if the marks are those of the request: all before them has been processed, and nothing behind."""
        request, number = self._request, self.reader.alignment.number
        if request is not None and request.number == number:
            posts = {new: self.acks.post_to(new, endpoint) for new, endpoint in request.news.items()}
            self._copying = Copying(request.number, request.moves, posts, self.operator, self.clock, self.outputs.fence)
            self.writer.hand_over(self._copying.snapshot)
        self.reader.release()

    def _work(self, now: float) -> bool:
        worked = super()._work(now)
        copying = self._copying
        if copying is None:
            return worked
        copying.send()
        if copying.done:
            self._copying = None
        elif copying.full and not self.reader.inbox:
            return False  # until it is confirmed
        return worked

    def _advance_snapshot(self) -> None:
        assert self._copying is not None
        if not self._copying.full:
            self.writer.advance()

    def _read_change(self, frame: Frame) -> None:
        copying, body = self._copying, frame.body
        if copying is not None and frame.kind in (FETCH, GOT) and type(body) is tuple and body[:1] == (copying.number,):
            if len(body) != 2:
                raise FrameError("FETCH and GOT have two fields")
            if frame.kind == FETCH:
                copying.fetch(frame.channel, body[1])
            else:
                copying.got(frame.channel, body[1])
            return
        self.changes.read(frame)
