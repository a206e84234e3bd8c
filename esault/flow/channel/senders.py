"""Senders: the channels from them, and the frames that may be taken from them (docs/explanation/runtime.md, Channels)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from esault.errors import FrameError
from esault.flow.channel.channel import InChannel
from esault.flow.channel.frame import KINDS, Frame, decode
from esault.payload.codec import Codec

__all__ = ["Senders"]


class Senders:
    """Knows the senders, and counts and drops what is no frame of theirs or of this run."""

    def __init__(self, epoch: int, codec: Codec, broken: Callable[[int, str], None]) -> None:
        """`broken` is told of a sender whose frames are missing, and which, once."""
        self._broken = broken
        self._epoch = epoch
        self._codec = codec
        #: from senders, by the number that this unit gave
        self._channels: dict[int, InChannel] = {}
        #: number of the last frame, by who sent it to the express socket
        self._express: dict[int, int] = {}
        self.dropped = 0

    def add(self, sender: int, number: int) -> None:
        """A sender, or a new channel of one that broke."""
        for old in [n for n, channel in self._channels.items() if channel.sender == sender]:
            del self._channels[old]
        self._channels[number] = InChannel(sender, number)

    def gone(self, sender: int, last: bool) -> None:
        """A sender is dead; with `last` all that it owed to others was done, and it stands for itself as one that has ended."""
        for number in [n for n, channel in self._channels.items() if channel.sender == sender]:
            if last:
                self._channels[number].ended = self._channels[number].broken = True
            else:
                del self._channels[number]

    def __bool__(self) -> bool:
        return bool(self._channels)

    def __iter__(self) -> Iterator[InChannel]:
        return iter(self._channels.values())

    @property
    def ended(self) -> bool:
        """Return whether no channel will bring more."""
        return all(channel.ended for channel in self._channels.values())

    def frame(self, data: bytes | memoryview) -> Frame | None:
        """The frame, if it is one of this run."""
        try:
            frame = decode(data, self._codec)
        except FrameError:
            self.dropped += 1
            return None
        if frame.epoch != self._epoch:
            self.dropped += 1
            return None
        return frame

    def admit(self, frame: Frame) -> InChannel | None:
        """The channel of a frame, if it is the next one there."""
        channel = self._channels.get(frame.channel)
        if channel is not None and channel.accepts(frame.seq):
            return channel
        self.dropped += 1
        # What a dead sender that stands as ended left unread was done: its channel must stay, or the end would never be found.
        if channel is not None and channel.broken and not channel.ended and frame.seq > channel.seen:
            del self._channels[frame.channel]
            text = f"frame {channel.seen + 1} is missing, {frame.seq} came ({KINDS[frame.kind]})"
            self._broken(channel.sender, text)
        return None

    def admit_express(self, frame: Frame) -> tuple[bool, bool]:
        """Return whether a frame of the express socket is news, and whether some before it are missing."""
        last = self._express.get(frame.channel, 0)
        if frame.seq <= last:
            self.dropped += 1
            return False, False
        self._express[frame.channel] = frame.seq
        return True, bool(last) and frame.seq != last + 1
