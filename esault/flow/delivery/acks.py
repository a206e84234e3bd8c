"""Acks of a sub-unit: XORed together per root, sent to where the root's ledger sits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from esault.flow.channel.frame import ACK, Root
from esault.flow.channel.wire import Link, Wire
from esault.payload.codec import Codec

__all__ = ["Acks", "Post"]

#: frames to an acker that does not take them are kept up to this many; beyond, the roots replay in the end
MAX_WAITING = 4096


class Post:
    """Numbered frames to one express endpoint, in which the sender's incarnation stands for the channel."""

    __slots__ = ("_codec", "_epoch", "_link", "_sender", "_seq", "queue")

    def __init__(self, link: Link, codec: Codec, epoch: int, sender: int) -> None:
        self._link = link
        self._codec = codec
        self._epoch = epoch
        self._sender = sender
        self._seq = 0
        self.queue: list[bytes] = []

    def put(self, kind: int, body: Any) -> None:
        """Send a frame; what the link refuses waits."""
        self._seq += 1
        self.queue.append(self._codec.pack((kind, self._epoch, self._sender, self._seq, body)))
        self.retry()

    def retry(self) -> bool:
        """Offer what waits again; True when nothing is left."""
        queue = self.queue
        while queue:
            if not self._link.send(queue[0]):
                # An ack is small; so many of them waiting means that the other end reads no more.
                del queue[MAX_WAITING:]
                return False
            del queue[0]
        return True

    def close(self, deliver: bool = False) -> None:
        """Close it: the other end reads no more; or, with `deliver`, nothing more will be sent."""
        self.queue.clear()
        if deliver:
            self._link.finish()
        else:
            self._link.close()


class Acks:
    """Collects acks until `send`. Acks for one's own roots go straight to `own`."""

    def __init__(self, incarnation: int, epoch: int, codec: Codec, wire: Wire, own: Callable[[Root, int, int], None]):
        self._incarnation = incarnation
        self._epoch = epoch
        self._codec = codec
        self._wire = wire
        self._own = own
        self._sums: dict[Root, list[int]] = {}
        self._posts: dict[int, Post] = {}
        self._endpoints: dict[int, str] = {}
        self._ackers: tuple[tuple[int, str], ...] = ()
        #: nothing is sent before it is known where the ledgers are
        self._routed = False
        #: the highest incarnation that was ever named
        self._newest = 0

    def __bool__(self) -> bool:
        return bool(self._sums)

    def add(self, root: Root, p: int, d: int) -> None:
        """XOR into the sums of this root."""
        sums = self._sums.get(root)
        if sums is None:
            self._sums[root] = [p, d]
        else:
            sums[0] ^= p
            sums[1] ^= d

    def set_ackers(self, owners: Mapping[int, str], ackers: tuple[tuple[int, str], ...]) -> None:
        """Set where each ledger is kept now. Posts to processes that are gone are closed."""
        # An ack server that is being made has no endpoint yet: what is for it waits.
        self._endpoints = {**owners, **{incarnation: endpoint for incarnation, endpoint in ackers if endpoint}}
        self._ackers = ackers
        self._routed = True
        self._newest = max([self._newest, *self._endpoints])
        for incarnation in [i for i in self._posts if i not in self._endpoints]:
            self._posts.pop(incarnation).close()

    def acker(self, root: Root) -> int:
        """Incarnation of who keeps the ledger of this root."""
        return self._ackers[root[1] % len(self._ackers)][0] if self._ackers else root[0]

    def post_to(self, incarnation: int, endpoint: str) -> Post:
        """The way to an express endpoint that the unit has named, whether or not a process is there."""
        self._endpoints.setdefault(incarnation, endpoint)
        post = self.post(incarnation)
        assert post is not None
        return post

    def number(self, root: int) -> int | None:
        """Return the number of the ack server that keeps the ledger of roots with this number; None where there are none."""
        return root % len(self._ackers) if self._ackers else None

    def post(self, incarnation: int) -> Post | None:
        """The way to this incarnation's express endpoint; None when it is not known (any more)."""
        post = self._posts.get(incarnation)
        if post is None:
            endpoint = self._endpoints.get(incarnation)
            if endpoint is None:
                return None
            post = Post(self._wire.link(endpoint), self._codec, self._epoch, self._incarnation)
            self._posts[incarnation] = post
        return post

    def send(self) -> None:
        """Send all that was collected, one frame an acker."""
        if not self._routed:
            return
        frames: dict[int, list[tuple[Root, int, int]]] = {}
        sums, self._sums = self._sums, {}
        for root, (p, d) in sums.items():
            acker = self.acker(root)
            if acker == self._incarnation:
                self._own(root, p, d)
            elif acker in self._endpoints:
                frames.setdefault(acker, []).append((root, p, d))
            elif acker > self._newest:
                self.add(root, p, d)  # born a moment ago: where it sits will be said soon
            # else the owner is dead, and its roots with it
        for acker, body in frames.items():
            post = self.post(acker)
            if post is not None:
                post.put(ACK, body)

    def retry(self) -> bool:
        """Offer waiting frames again; True when none is left."""
        done = True
        for post in self._posts.values():
            if post.queue and not post.retry():
                done = False
        return done

    def close(self, deliver: bool = False) -> None:
        """Close all links; with `deliver`, what was taken still arrives."""
        for post in self._posts.values():
            post.close(deliver)
        self._posts.clear()
