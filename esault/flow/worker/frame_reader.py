"""The reading side of a sub-unit: frames from its two sockets; those that are none of this run are dropped."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sized
from typing import Any

from esault.errors import FrameError
from esault.flow.channel.channel import InChannel
from esault.flow.channel.fences import Fences
from esault.flow.channel.frame import (
    ACK,
    BARRIER,
    CHANGE_KINDS,
    CHECKPOINT,
    DATA,
    END,
    FENCE,
    MARK,
    PROBE,
    WATERMARK,
    Frame,
    Root,
)
from esault.flow.channel.senders import Senders
from esault.flow.checkpoint.alignment import Alignment
from esault.flow.delivery.roots import Roots
from esault.flow.handover.divide import Entry
from esault.flow.handover.handover import Handover
from esault.flow.watermark.merging import word
from esault.flow.worker.bounded_inbox import BoundedInbox
from esault.flow.worker.key_load import KeyLoadSampler
from esault.flow.worker.probes import Probes
from esault.flow.worker.watermarks import Watermarks
from esault.messages.change import EndRead
from esault.messages.control import Broken, Build
from esault.messages.delivery import Delivery
from esault.payload.codec import Codec

__all__ = ["FrameReader"]


class FrameReader:
    """The reader of frames. It holds the inbox: what was read and not processed.

    A bolt's sub-unit sets what only bolts have: `handover`, `bound` and `key_load`.
    """

    def __init__(
        self,
        build: Build,
        codec: Codec,
        roots: Roots,
        probes: Probes,
        watermarks: Watermarks | None,
        clock: Callable[[], float],
        say: Callable[[Any], None],
    ) -> None:
        """`say` takes messages for the unit."""
        self._incarnation = build.incarnation
        self._exactly = build.settings.delivery is Delivery.EXACTLY_ONCE
        self._comes_again = build.settings.delivery is Delivery.AT_LEAST_ONCE
        self._most_bytes = build.settings.inbox_bytes
        self._aligned = build.settings.aligned_checkpoint_timeout
        self._roots = roots
        self._probes = probes
        self._watermarks = watermarks
        self._clock = clock
        self._say = say
        self.senders = Senders(build.epoch, codec, self.broken)
        self.alignment = Alignment()
        self.fences = Fences()
        #: the time by which what stands before the cut is to be processed, and whether a cut is made without that, with all read
        self.aligned_by, self.unaligned = math.inf, False
        self.inbox: deque[Entry] = deque()
        #: tuples that were read and not processed
        self.backlog = 0
        #: tuples that were read
        self.arrivals = 0
        #: batches that were processed
        self.taken = 0
        #: batches that are neither in the inbox nor processed
        self.open_batches: Sized = ()
        #: bytes of a row as it comes in, on the average of late
        self.row_bytes = 64.0
        #: stands before the inbox where changes move rows; None: they do not
        self.handover: Handover | None = None
        #: how much may wait here; None: as much as comes
        self.bound: BoundedInbox | None = None
        #: told of each probe; None: keys are not sampled
        self.key_load: KeyLoadSampler | None = None
        #: takes frames that go between owners of a unit, and raises FrameError
        self.read_change: Callable[[Frame], None] = self._no_change
        #: told of the root and the flags of each mark
        self.on_mark: Callable[[Root, int], None] | None = None

    # what waits here ---------------------------------------------------------------------------

    @property
    def may_read(self) -> bool:
        """True where the shell should read the data socket; the express socket is always read."""
        handover = self.handover
        if self.unaligned:
            return True  # the mark of the checkpoint stands behind the data
        if handover is None:
            return self.backlog * self.row_bytes < self._most_bytes
        # While a change is on everything is read: a barrier or the state may stand behind the data.
        # So it is where the inbox is bounded: a sender must not wait for what would be dropped.
        if handover.active or self.bound is not None:
            return True
        return (self.backlog - handover.away) * self.row_bytes < self._most_bytes

    @property
    def waiting(self) -> int:
        """Tuples in the inbox."""
        handover = self.handover
        return self.backlog if handover is None else self.backlog - handover.away

    def unprocessed(self) -> int:
        """Return the tuples that were read and are still here: in the inbox, or where a change has them."""
        handover = self.handover
        return self.waiting + (handover.pending if handover is not None and handover.active else 0)

    @property
    def occupancy(self) -> float:
        """Share of the inbox that is taken up: of its bytes, or of its rows where these are bounded."""
        if self.bound is not None:
            return self.waiting / self.bound.most
        return float(self.waiting * self.row_bytes / self._most_bytes)

    @property
    def dropped(self) -> int:
        """Tuples that came when the inbox was full."""
        return 0 if self.bound is None else self.bound.dropped

    @property
    def unfinished(self) -> int:
        """Batches that were read and are not counted in `taken`."""
        return len(self.inbox) + len(self.open_batches)

    @property
    def ticket(self) -> int:
        """The count of `taken` at which all that was read so far has been processed."""
        return self.taken + len(self.inbox) + len(self.open_batches)

    # frames ------------------------------------------------------------------------------------

    def read(self, data: bytes | memoryview) -> None:
        """Take a frame from either socket. What is no frame of this run is counted and dropped."""
        frame = self.senders.frame(data)
        if frame is None:
            return
        if frame.kind in (ACK, MARK):
            self._read_express(frame)
        elif frame.kind == PROBE:
            if self.key_load is not None:
                self.key_load.refill()
            self._probes.read(frame, self.ticket)
        elif frame.kind in CHANGE_KINDS:
            try:
                self.read_change(frame)
            except FrameError:
                self.senders.dropped += 1
        else:
            self._read_data(frame, len(data))

    def _read_express(self, frame: Frame) -> None:
        news, missing = self.senders.admit_express(frame)
        if not news:
            return
        now = self._clock()
        if missing:
            self._roots.grace(now)  # acks are missing: what they would have ended must be replayed
            if self._exactly:
                self.broken(frame.channel, "acks are missing")
        if frame.kind == ACK:
            for root, p, d in frame.body:
                self._roots.ack(root, p, d, now)
        else:
            for root, flags in frame.body:
                if self.on_mark is not None:
                    self.on_mark(root, flags)
                self._roots.mark(root, flags, now)

    def _read_data(self, frame: Frame, size: int) -> None:
        channel = self.senders.admit(frame)
        if channel is None:
            return
        self._pass(channel, frame, size)

    def _pass(self, channel: InChannel, frame: Frame, size: int) -> None:
        """Take a frame in, or put it aside behind a fence or the cut of a checkpoint."""
        if self.fences.holds(channel):
            self.fences.put_aside(channel, frame, size)
        elif self.alignment.holds(channel) and frame.kind != FENCE:  # who waits for a fence may still owe the cut
            self.alignment.put_aside(channel, frame, size)
        else:
            self._take_frame(channel, frame, size)

    def _pass_fences(self) -> None:
        """Take in what stood behind fences and need not wait any more."""
        for channel, frame, size in self.fences.released(self.senders):
            self._pass(channel, frame, size)

    def _take_frame(self, channel: InChannel, frame: Frame, size: int) -> None:
        if frame.kind == DATA:
            sent, batches = frame.body
            if self.bound is not None:
                batches = self.bound.fitting(sent, batches)
            rows, inbox, handover = 0, self.inbox, self.handover
            for batch in batches:
                if handover is not None and handover.active:
                    handover.offer(Entry(sent, batch), inbox, channel.sender)
                else:
                    inbox.append(Entry(sent, batch))
                rows += len(batch.keys)
            self.backlog += rows
            self.arrivals += rows
            self.row_bytes += 0.1 * (size / max(1, rows) - self.row_bytes)
        elif frame.kind == END:
            channel.ended = True
            self._say(EndRead(self._incarnation, channel.sender))
            if self.handover is not None:
                self.handover.ended(channel.sender)
            self._pass_fences()
        elif frame.kind == FENCE:
            try:
                self.fences.read(channel, frame.body, self.senders)
            except FrameError:
                self.senders.dropped += 1
            self._pass_fences()
        elif frame.kind == WATERMARK:
            said = word(frame.body)
            if said is not None and self._watermarks is not None:
                self._watermarks.merging.read(self.ticket, channel.number, said)
        elif frame.kind == BARRIER and type(frame.body) is int:
            if self.handover is not None:
                self.handover.barrier(channel.sender, frame.body)
        elif frame.kind == CHECKPOINT and type(frame.body) is int:
            self.begin_checkpoint(frame.body)
            self.alignment.cut(channel, frame.body)

    def _no_change(self, frame: Frame) -> None:
        self.senders.dropped += 1

    def broken(self, sender: int, text: str) -> None:
        """Tell the unit that frames of a sender are missing."""
        self._say(Broken(self._incarnation, sender, text))

    # senders -----------------------------------------------------------------------------------

    def add(self, sender: int, number: int) -> None:
        """Take frames of a sender, or those on the new channel of one whose channel broke."""
        self.senders.add(sender, number)
        self._pass_fences()
        if self._watermarks is not None:
            self._watermarks.merging.add(sender, number)
            self._watermarks.merging.gone(self.ticket, sender, but=number)

    def gone(self, sender: int, last: bool, succeeded: bool = False) -> None:
        """Forget a sender that is dead or has left; `last`: it counts as one that has ended, `succeeded`: another takes its place."""
        self.senders.gone(sender, last)
        if self._watermarks is not None:
            # With checkpoints all go back together, and nothing comes again by itself.
            self._watermarks.merging.gone(self.ticket, sender, awaited=succeeded and self._comes_again)
        if self.handover is not None:
            self.handover.gone(sender)
        self._pass_fences()

    # the cut of a checkpoint -------------------------------------------------------------------

    def begin_checkpoint(self, number: int, aligned: float | None = None) -> None:
        """Hold back what comes behind the marks of this checkpoint, which may be unaligned after `aligned` seconds.

        One before it that is on was given up, which is not known here yet.
        """
        before = self.alignment.number
        if before is not None and number > before and self.alignment.abandon(before):
            self.release()
        if self.alignment.begin(number) and self._exactly and (before != number or aligned is not None):
            self.aligned_by = self._clock() + (self._aligned if aligned is None else aligned)

    @property
    def cut_is_complete(self) -> bool:
        """True when the marks of a checkpoint have come from all senders that have not ended."""
        return self.alignment.complete(self.senders)

    def abandon(self, number: int) -> None:
        """Give up this checkpoint, and take in what was held back for it."""
        if self.alignment.abandon(number):
            self.release()

    def release(self) -> None:
        """Take in what was held back: the cut is made, or will not be."""
        self.aligned_by, self.unaligned = math.inf, False
        for channel, frame, size in self.alignment.release():
            self._pass(channel, frame, size)  # one of them may be the mark of the next one
