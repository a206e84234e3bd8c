"""What a sub-unit reads: frames from its two sockets, each counted, and those that are none of this run dropped."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from esault.errors import FrameError
from esault.flow.channel.channel import InChannel
from esault.flow.channel.frame import ACK, BARRIER, CHANGE_KINDS, CHECKPOINT, DATA, END, MARK, PROBE, WATERMARK, Frame
from esault.flow.channel.senders import Senders
from esault.flow.checkpoint.alignment import Alignment
from esault.flow.delivery.roots import Roots
from esault.flow.handover.divide import Entry
from esault.flow.watermark.merging import word
from esault.flow.worker.bounded_inbox import BoundedInbox
from esault.flow.worker.probes import Probes
from esault.flow.worker.watermarks import Watermarks
from esault.messages.change import EndRead
from esault.messages.control import Broken
from esault.messages.settings import Settings

__all__ = ["FrameReader"]


class FrameReader:
    """The reading side of a sub-unit, which owns all that is named here."""

    incarnation: int
    settings: Settings
    clock: Callable[[], float]
    senders: Senders
    roots: Roots
    probes: Probes
    alignment: Alignment
    watermarks: Watermarks | None
    bound: BoundedInbox | None
    inbox: deque[Entry]
    outbox: deque[Any]
    backlog: int
    arrivals: int
    taken: int
    _row_bytes: float
    _exactly: bool

    def _begin_cut(self, number: int) -> None:
        raise NotImplementedError

    @property
    def may_read(self) -> bool:
        """Whether the shell should read the data socket; the express socket is always read."""
        return self.waiting * self._row_bytes < self.settings.inbox_bytes

    @property
    def _unfinished(self) -> int:
        """Batches that were read and are not counted in `taken`."""
        return len(self.inbox)

    @property
    def waiting(self) -> int:
        """Tuples in the inbox."""
        return self.backlog

    def read(self, data: bytes | memoryview) -> None:
        """Take a frame from either socket. What is no frame of this run is counted and dropped."""
        frame = self.senders.frame(data)
        if frame is None:
            return
        if frame.kind in (ACK, MARK):
            self._read_express(frame)
        elif frame.kind == PROBE:
            self._read_probe(frame)
        elif frame.kind in CHANGE_KINDS:
            try:
                self._read_change(frame)
            except FrameError:
                self.senders.dropped += 1
        else:
            self._read_data(frame, len(data))

    def _read_express(self, frame: Frame) -> None:
        news, missing = self.senders.admit_express(frame)
        if not news:
            return
        now = self.clock()
        if missing:
            self.roots.grace(now)  # acks are missing: what they would have ended must be replayed
            if self._exactly:
                self._on_gap(frame.channel, "acks are missing")
        if frame.kind == ACK:
            for root, p, d in frame.body:
                self.roots.ack(root, p, d, now)
        else:
            for root, flags in frame.body:
                self.roots.mark(root, flags, now)

    def _read_probe(self, frame: Frame) -> None:
        self.probes.read(frame, self._ticket)

    @property
    def _ticket(self) -> int:
        """How many batches will have been taken when all that was read so far has been."""
        return self.taken + self._unfinished

    def _read_data(self, frame: Frame, size: int) -> None:
        channel = self.senders.admit(frame)
        if channel is None:
            return
        if self.alignment.holds(channel):
            self.alignment.put_aside(channel, frame, size)
        else:
            self._take_frame(channel, frame, size)

    def _take_frame(self, channel: InChannel, frame: Frame, size: int) -> None:
        if frame.kind == DATA:
            sent, batches = frame.body
            if self.bound is not None:
                batches = self.bound.fitting(sent, batches)
            rows = 0
            for batch in batches:
                self._take_in(Entry(sent, batch))
                rows += len(batch.keys)
            self.backlog += rows
            self.arrivals += rows
            self._row_bytes += 0.1 * (size / max(1, rows) - self._row_bytes)
        elif frame.kind == END:
            channel.ended = True
            self.outbox.append(EndRead(self.incarnation, channel.sender))
            self._sender_done(channel.sender)
        elif frame.kind == WATERMARK:
            said = word(frame.body)
            if said is not None and self.watermarks is not None:
                self.watermarks.merging.read(self._ticket, channel.number, said)
        elif frame.kind == BARRIER and type(frame.body) is int:
            self._barrier(channel.sender, frame.body)
        elif frame.kind == CHECKPOINT and type(frame.body) is int:
            self._begin_cut(frame.body)
            self.alignment.cut(channel, frame.body)

    def _on_gap(self, sender: int, text: str) -> None:
        self.outbox.append(Broken(self.incarnation, sender, text))

    def _take_in(self, entry: Entry) -> None:
        """A batch was read."""
        self.inbox.append(entry)

    def _barrier(self, sender: int, version: int) -> None:
        """A sender sends by this version of the table from now on."""

    def _sender_done(self, sender: int) -> None:
        """A sender has sent END."""

    def _sender_gone(self, sender: int) -> None:
        """A sender is dead, or has left."""

    def _read_change(self, frame: Frame) -> None:
        """A frame of a change of this unit, from another of its owners."""
        self.senders.dropped += 1
