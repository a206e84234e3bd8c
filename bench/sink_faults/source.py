"""A spout of numbers, which ends where a file says so."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

from esault import Context, EndOfStream, Spout

__all__ = ["END", "KEYS", "READ", "Numbers"]

KEYS = 997
#: in the folder: how many numbers there are, once that is known; how many were read
END, READ = "end", "read.json"


class Numbers(Spout[str, int]):
    """0, 1, 2 ... at a rate; number i has the key f"k{i % KEYS}"."""

    def __init__(self, folder: str, rate: float) -> None:
        self.folder, self.rate = Path(folder), rate
        self.next = 0

    def open(self, context: Context) -> None:
        """Begin to count the seconds."""
        self.started = time.monotonic()
        self.first: int | None = None

    def read(self, limit: int) -> Sequence[tuple[str, int]]:
        """Return those that are due."""
        if self.first is None:
            self.first = self.next
        end = self.folder / END
        last = int(end.read_text()) if end.exists() else None
        if last is not None and self.next >= last:
            (self.folder / READ).write_text(json.dumps({"next": self.next}))
            raise EndOfStream
        come = self.first + int((time.monotonic() - self.started) * self.rate) if last is None else last
        first, self.next = self.next, max(self.next, min(self.next + limit, come))
        return [(f"k{number % KEYS}", number) for number in range(first, self.next)]

    def position(self) -> int:
        """Return the next."""
        return self.next

    def seek(self, position: int) -> None:
        """Go there."""
        self.next = position
