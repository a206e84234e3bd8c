"""A part of the sub-units of a replica: it brings another replica up to date."""

from __future__ import annotations

from esault.errors import FrameError, TopologyError
from esault.flow.channel.frame import FETCH, GOT, Frame
from esault.flow.handover.copying import Copying
from esault.flow.operators.object_operator import ObjectOperator
from esault.flow.worker.bolt_unit import BoltSubUnit
from esault.messages.replicas import Copy, CopyOver, CopyReady
from esault.topology.replicas import has_finish

__all__ = ["ReplicaCopies"]


class ReplicaCopies:
    """Copies of a sub-unit's state to another replica. It processes as any bolt does; its marks are not those of checkpoints."""

    def __init__(self, bolt: BoltSubUnit) -> None:
        self._bolt = bolt
        if isinstance(bolt.operator, ObjectOperator) and has_finish(type(bolt.operator.object)):
            raise TopologyError(
                f"unit {bolt.plan.original!r}: its bolt defines finish() and comes by shuffle(), which does not go together with "
                "replicas; group it by_key(), or leave finish out"
            )
        #: the request for state that is on: a new sub-unit of another replica is to get it
        self._request: Copy | None = None
        self.copying: Copying | None = None
        bolt.reader.read_change = self._read_change
        bolt.handlers |= {Copy: [self._on_copy], CopyOver: [self._on_copy_over]}
        self._work = bolt.work
        bolt.work, bolt.cut = self.work, self.cut

    def _on_copy(self, message: Copy) -> None:
        self._request = message
        self._bolt.outbox.append(CopyReady(self._bolt.incarnation, message.number))

    def _on_copy_over(self, message: CopyOver) -> None:
        number = message.number
        if self._request is not None and self._request.number <= number:
            self._request = None
        if self.copying is not None and self.copying.number <= number:
            self.copying = self._bolt.writer.snapshot = None
        self._bolt.reader.abandon(number)

    def cut(self, now: float) -> None:
        """Begin to copy state if the marks are those of the request: all before them has been processed, and nothing behind."""
        request, number = self._request, self._bolt.reader.alignment.number
        if request is not None and request.number == number:
            bolt = self._bolt
            posts = {new: bolt.acks.post_to(new, endpoint) for new, endpoint in request.news.items()}
            copying = Copying(request.number, request.moves, posts, bolt.operator.state, bolt.clock, bolt.outputs.fence)
            self.copying = copying
            bolt.writer.hand_over(copying.snapshot, lambda: copying.full)
        self._bolt.reader.release()

    def work(self, now: float) -> bool:
        """Work as any bolt does, then send what was copied."""
        worked = self._work(now)
        copying = self.copying
        if copying is None:
            return worked
        copying.send()
        if copying.done:
            self.copying = None
        elif copying.full and not self._bolt.reader.inbox:
            return False  # until it is confirmed
        return worked

    def _read_change(self, frame: Frame) -> None:
        copying, body = self.copying, frame.body
        if copying is not None and frame.kind in (FETCH, GOT) and type(body) is tuple and body[:1] == (copying.number,):
            if len(body) != 2:
                raise FrameError("FETCH and GOT have two fields")
            if frame.kind == FETCH:
                copying.fetch(frame.channel, body[1])
            else:
                copying.got(frame.channel, body[1])
            return
        self._bolt.changes.read(frame)
