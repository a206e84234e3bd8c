"""The newest rows that are pushed to clients, each with its number."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["PushBuffer", "Pushed"]


class Pushed(NamedTuple):
    """A row as it is sent; or with `lost` so many rows that never came here."""

    number: int
    event: str
    data: str
    lost: int = 0


class PushBuffer:
    """At most `size` rows, the oldest go first. Ids are those of this buffer: a client that comes with another's is known as that."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._token = secrets.token_hex(4)
        #: rows by number; those that stand here follow one another
        self._rows: dict[int, Pushed] = {}
        #: number of the oldest row here, and of the next one to come
        self.first = self.next = 1
        self._waiting: list[asyncio.Future[None]] = []
        #: no more will come
        self.ended = False

    def add(self, event: str, data: str, lost: int = 0) -> None:
        """Take a row."""
        self._rows[self.next] = Pushed(self.next, event, data, lost)
        self.next += 1
        if self.next - self.first > self._size:
            del self._rows[self.first]
            self.first += 1

    def wake(self) -> None:
        """Tell those that wait: rows have been added, or it has ended."""
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def since(self, number: int, most: int) -> Sequence[Pushed]:
        """Return rows from this number on, which is here or to come."""
        return [self._rows[each] for each in range(number, min(number + most, self.next))]

    async def more(self) -> None:
        """Wait until rows are added or it has ended."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        await future

    def id(self, row: Pushed) -> str:
        """Return the id of a row, by which a client goes on behind it."""
        return f"{self._token}-{row.number}"

    def behind(self, id: str) -> int | None:
        """Return the number of the row behind the one with this id, which may be gone; None for an id of another buffer."""
        token, _, number = id.rpartition("-")
        # Python reads no number of thousands of digits.
        if token != self._token or not number.isascii() or not number.isdigit() or len(number) > len(str(self.next)):
            return None
        return int(number) + 1 if int(number) < self.next else None
