"""Rows on their way from a client that waits for a server, in a thread of its own, to the one that reads."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from esault.background import BackgroundLoop
from esault.errors import SourceError
from esault.tls_refused import tls_refused

__all__ = ["Incoming", "answer_refused", "tls_trouble"]

#: seconds until the first new attempt at most, and between two of them at most
_FIRST_BACKOFF, _LONGEST_BACKOFF = 0.5, 30.0
#: rows that wait to be read; then nothing more is asked for
_MOST = 10_000
#: seconds between two looks for room
_LOOK_EVERY = 0.01


class Incoming:
    """A bounded queue that a coroutine fills; with each row the position behind it."""

    def __init__(self, who: str, say: Callable[[str], None], position: Any) -> None:
        self._who, self._say = who, say
        self._lock = threading.Lock()
        self._rows: deque[tuple[tuple[Any, Any], Any]] = deque()
        #: behind the last row that was taken
        self.position = position
        self._background = BackgroundLoop()
        self._running: Any = None
        self._away = False
        self._tries = 0

    def start(self, filling: Coroutine[Any, Any, None]) -> None:
        """Begin; its end is the end of the stream."""
        self._running = self._background.submit(filling)

    async def put(self, rows: list[tuple[tuple[Any, Any], Any]]) -> None:
        """Add rows, each with the position behind it; waits while there is no room."""
        while len(self._rows) >= _MOST:
            await asyncio.sleep(_LOOK_EVERY)
        with self._lock:
            self._rows.extend(rows)

    def take(self, limit: int) -> list[tuple[Any, Any]] | None:
        """Return up to `limit` rows; None: there are no more, and none will come. Raises what the coroutine has raised."""
        over = self._running is None or self._running.done()
        rows: list[tuple[Any, Any]] = []
        with self._lock:
            while self._rows and len(rows) < limit:
                row, self.position = self._rows.popleft()
                rows.append(row)
        if rows or not over:
            return rows
        if self._running is not None and not self._running.cancelled():
            self._running.result()
        return None

    def __len__(self) -> int:
        return len(self._rows)

    def halt(self) -> None:
        """Ask for nothing more."""
        if self._running is not None:
            self._running.cancel()
            self._running = None

    def close(self) -> None:
        """End the thread."""
        self.halt()
        self._background.close()

    def answered(self) -> None:
        """The server has answered."""
        self._tries = 0
        if self._away:
            self._away = False
            self._say(f"{self._who}: the server answers again")

    async def pause(self, trouble: str, asked: float | None = None) -> None:
        """Wait until the next attempt is due; the trouble is said once."""
        self._tries += 1
        if self._tries > 1 and not self._away:
            self._away = True
            self._say(f"{self._who}: {trouble}: trying again until it answers")
        backoff = random.uniform(0, min(_LONGEST_BACKOFF, _FIRST_BACKOFF * 2 ** min(self._tries, 10)))
        await asyncio.sleep(backoff + (asked or 0.0))


def tls_trouble(who: str, error: Exception) -> str:
    """Return what is wrong with a connection by TLS, where it may pass. Raises SourceError where no waiting mends it."""
    remedy = tls_refused(str(error), "http:// or ws://", "SSL_CERT_FILE in the environment")
    if remedy is not None:
        raise SourceError(f"{who}: TLS is refused: {error}; {remedy}")
    return str(error)


def answer_refused(who: str, status: int, reason: str, said: str) -> SourceError:
    """Return the error for an answer that no waiting mends."""
    return SourceError(f"{who}: the server says {status} {reason}: {said[:200]}; correct url, token or headers")
