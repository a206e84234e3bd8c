"""An ack server: a ledger outside the owners of the roots (Zhan et al. 2017, at-least-once; docs/explanation/delivery.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from esault.errors import FrameError
from esault.flow.channel.frame import ACK, MARK, REGISTER, Root, decode
from esault.flow.channel.wire import Wire
from esault.flow.delivery.acks import Post
from esault.flow.delivery.ledger import Ledger
from esault.flow.delivery.roots import STALLED
from esault.messages.settings import Settings
from esault.payload.codec import Codec

__all__ = ["AckServer"]


class AckServer:
    """Keeps the ledger of the roots that are its share, and tells their owners what is done."""

    def __init__(self, incarnation: int, epoch: int, settings: Settings, wire: Wire) -> None:
        self.incarnation = incarnation
        self._epoch = epoch
        self._settings = settings
        self._wire = wire
        self._codec = Codec()
        self.ledger = Ledger()
        self._endpoints: dict[int, str] = {}
        self._posts: dict[int, Post] = {}
        self._marks: dict[int, list[tuple[Root, int]]] = {}
        self._newest = 0
        #: number of the last frame read, by sender: a frame that came twice would undo itself
        self._seen: dict[int, int] = {}
        self.dropped_frames = 0

    def owners(self, endpoints: Mapping[int, str]) -> None:
        """Set the addresses of the owners of roots; the roots of those that are gone are forgotten."""
        for owner in self._endpoints:
            if owner not in endpoints:
                self.ledger.forget_owner(owner)
                post = self._posts.pop(owner, None)
                if post is not None:
                    post.close()
        self._endpoints = dict(endpoints)
        self._newest = max([self._newest, *endpoints])

    def read(self, data: bytes | memoryview, now: float) -> None:
        """Take a frame with registrations or acks; what cannot be read is counted and dropped."""
        try:
            frame = decode(data, self._codec)
        except FrameError:
            self.dropped_frames += 1
            return
        if frame.epoch != self._epoch or frame.kind not in (ACK, REGISTER):
            self.dropped_frames += 1
            return
        if frame.seq <= self._seen.get(frame.channel, 0):
            self.dropped_frames += 1
            return
        self._seen[frame.channel] = frame.seq
        update = self.ledger.register if frame.kind == REGISTER else self.ledger.ack
        for root, p, d in frame.body:
            if frame.kind == REGISTER and root[2]:
                self.ledger.forget((root[0], root[1], root[2] - 1))
            flags = update(root, p, d, now)
            if flags:
                self._marks.setdefault(root[0], []).append((root, int(flags)))

    def send(self) -> None:
        """Send the marks of this turn, one frame an owner."""
        marks, self._marks = self._marks, {}
        for owner, body in marks.items():
            post = self._post(owner)
            if post is not None:
                post.put(MARK, body)
            elif owner > self._newest:
                self._marks[owner] = body  # born a moment ago: where it sits will be said soon

    def watch(self, now: float) -> None:
        """Find roots without progress and drop what no owner registered; called now and then."""
        for root in self.ledger.stalled(now, self._settings.replay_after):
            # It stays until its next attempt is registered or its owner is gone: a mark that is lost is said again,
            # after as long a time, since this empty ack counts as a sign of life.
            self._marks.setdefault(root[0], []).append((root, STALLED))
            self.ledger.ack(root, 0, 0, now)
        self.ledger.expire(now)
        self.send()

    def retry(self) -> bool:
        """Offer waiting frames again; True when none is left."""
        done = True
        for post in self._posts.values():
            if post.queue and not post.retry():
                done = False
        return done

    def _post(self, owner: int) -> Post | None:
        post = self._posts.get(owner)
        if post is None and owner in self._endpoints:
            post = Post(self._wire.link(self._endpoints[owner]), self._codec, self._epoch, self.incarnation)
            self._posts[owner] = post
        return post

    def counts(self) -> dict[str, Any]:
        """Plain numbers for status reports."""
        return {"open": len(self.ledger), "dropped_frames": self.dropped_frames}
