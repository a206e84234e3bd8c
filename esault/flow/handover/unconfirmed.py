"""The account of what an owner of keys has sent to others and they have not confirmed: it goes again where it may be lost."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from esault.flow.channel.frame import ROWS, STATE, STATE_END
from esault.flow.delivery.acks import Post

__all__ = ["UNCONFIRMED_BYTES", "Unconfirmed"]

#: bytes of state that are on their way and not confirmed, at most
UNCONFIRMED_BYTES = 64 << 10
#: seconds without a confirmation behind which what is not confirmed goes again, at first and at most: a connection that is reset takes
#: with it what was on its way
AGAIN, LONGEST_AGAIN = 5.0, 60.0


class Unconfirmed:
    """Rows, portions of state and the end of one change, or copy, on their way to new owners.

    They are numbered: the rows 0, portions from 1 on, the end one more than the last portion. The end says how many portions went to
    each, so that one that comes again behind it counts. What comes twice does no harm.
    """

    def __init__(self, version: int, posts: Mapping[int, Post], clock: Callable[[], float]) -> None:
        self._version = version
        self._clock = clock
        #: the way to each new owner
        self.posts = dict(posts)
        #: that of the last portion
        self.number = 0
        self._portions = dict.fromkeys(posts, 0)
        #: (new owner, number) -> the body, and how many bytes of state are in it
        self._kept: dict[tuple[int, int], tuple[Any, int]] = {}
        self._bytes = 0
        self.ended = False
        #: when it all goes again, and after how long the next time
        self.again_at, self._pause = math.inf, AGAIN

    @property
    def full(self) -> bool:
        """Return whether enough is on its way."""
        return self._bytes >= UNCONFIRMED_BYTES

    @property
    def done(self) -> bool:
        """Return whether all went and was confirmed."""
        return self.ended and not self._kept

    def rows(self, new: int, body: Any) -> None:
        """Send its rows to a new owner."""
        self._put(new, 0, body, 0)

    def portion(self, new: int, items: Sequence[tuple[Any, bytes]], size: int) -> None:
        """Send a portion of state, of so many bytes."""
        self.number += 1
        self._portions[new] += 1
        self._put(new, self.number, (self._version, self.number, tuple(items)), size)

    def end(self) -> None:
        """Tell all that no other portion follows."""
        self.ended = True
        for new in self.posts:
            self._put_end(new)

    def got(self, new: int, number: int) -> None:
        """A new owner has this."""
        kept = self._kept.pop((new, number), None)
        if kept is not None:
            self._bytes -= kept[1]
            self._pause = AGAIN
            self.again_at = self._clock() + AGAIN if self._kept else math.inf

    def look(self) -> None:
        """Send all that was not confirmed for long, in order: it may be lost, or the word that it has come."""
        now = self._clock()
        if now < self.again_at:
            return
        for new, number in sorted(self._kept, key=lambda each: each[1]):
            self.posts[new].put(self._kind(number), self._kept[new, number][0])
        self._pause = min(LONGEST_AGAIN, 2 * self._pause)
        self.again_at = now + self._pause

    def replace(self, dead: int, new: int, post: Post, rows: Any) -> None:
        """Send what a dead one did not confirm to its successor, behind `rows`; None: they have gone to no one yet."""
        del self.posts[dead], self._portions[dead]
        self.posts[new] = post
        kept = sorted((number, self._kept.pop((owner, number))) for owner, number in list(self._kept) if owner == dead)
        portions = [(number, body, size) for number, (body, size) in kept if 0 < number <= self.number]
        self._bytes -= sum(size for _, _, size in portions)
        self._portions[new] = len(portions)
        if rows is not None:
            self.rows(new, rows)
        for number, body, size in portions:
            self._put(new, number, body, size)
        if self.ended:
            self._put_end(new)

    def _put(self, new: int, number: int, body: Any, size: int) -> None:
        self._kept[new, number] = body, size
        self._bytes += size
        self.posts[new].put(self._kind(number), body)
        if self.again_at == math.inf:
            self.again_at = self._clock() + self._pause

    def _put_end(self, new: int) -> None:
        self._put(new, self.number + 1, (self._version, self.number, self._portions[new]), 0)

    def _kind(self, number: int) -> int:
        return ROWS if not number else STATE if number <= self.number else STATE_END
