"""Posts on their way from the thread of a server to the one that reads."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from concurrent.futures import Future
from typing import Any

__all__ = ["Post", "Posts", "is_text"]

#: posts that are remembered by their idempotency keys
_REMEMBERED = 100_000


class Post:
    """The rows of one request, and what is known of them: `durable` is done with True, or with False where it cannot be said."""

    __slots__ = ("digest", "durable", "name", "rows", "size")

    def __init__(self, name: str, rows: list[tuple[Any, Any]], size: int, digest: bytes = b"") -> None:
        self.name, self.rows, self.size, self.digest = name, rows, size, digest
        self.durable: Future[bool] = Future()


class Posts:
    """A bounded queue: full where as many rows or bytes wait as may. One post more than that is never in it."""

    def __init__(self, most_rows: int, most_bytes: int) -> None:
        self._most_rows, self._most_bytes = most_rows, most_bytes
        self._lock = threading.Lock()
        self._waiting: deque[Post] = deque()
        self._rows = self._bytes = 0
        #: rows of the first one that have been given, and of all
        self._of_first = self.given = 0
        #: those that were given and are not durable, with the number of rows given behind each
        self._given: deque[tuple[int, Post]] = deque()
        #: idempotency key -> post
        self._known: OrderedDict[str, Post] = OrderedDict()
        self._names: list[str] = []
        self.closed = False

    def __len__(self) -> int:
        return self._rows

    def known(self, key: str) -> Post | None:
        """Return the post that came with this idempotency key."""
        with self._lock:
            return self._known.get(key)

    def put(self, post: Post, key: str | None) -> bool:
        """Take it; False: there is no room, or nothing is taken any more."""
        with self._lock:
            if self.closed or self._rows >= self._most_rows or self._bytes >= self._most_bytes:
                return False
            if key is not None:
                self._known[key] = post
                if len(self._known) > _REMEMBERED:
                    self._known.popitem(last=False)
            self._waiting.append(post)
            self._rows += len(post.rows)
            self._bytes += post.size
            return True

    def take(self, limit: int) -> list[tuple[Any, Any]]:
        """Return up to `limit` rows in the order in which they came."""
        rows: list[tuple[Any, Any]] = []
        self._names = []
        with self._lock:
            while self._waiting and len(rows) < limit:
                post = self._waiting[0]
                begin = self._of_first
                part = post.rows[begin : begin + limit - len(rows)]
                rows += part
                self._names += [f"{post.name}/{number}" for number in range(begin, begin + len(part))]
                self._of_first += len(part)
                if self._of_first == len(post.rows):
                    self._waiting.popleft()
                    self._bytes -= post.size
                    self._of_first = 0
                    self._given.append((self.given + len(rows), post))
                    post.rows = []
            self._rows -= len(rows)
            self.given += len(rows)
        return rows

    def names(self) -> list[str]:
        """Return a name for each row of the last `take`."""
        return self._names

    def settle(self, given: int) -> None:
        """Call posts durable whose rows are among the first so many that were given."""
        while self._given and self._given[0][0] <= given:
            self._given.popleft()[1].durable.set_result(True)

    def close(self) -> None:
        """Take no more."""
        with self._lock:
            self.closed = True

    def give_up(self) -> None:
        """Say of all that is not durable that it is not known to be."""
        self.close()
        for post in [*(post for _, post in self._given), *self._waiting]:
            post.durable.set_result(False)
        self._given.clear()


def is_text(header: str) -> bool:
    """Return whether a header is UTF-8; aiohttp has surrogates for bytes that are none."""
    try:
        header.encode()
    except UnicodeEncodeError:
        return False
    return True
