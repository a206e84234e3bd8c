"""An object as a file that is open for reading: ranged reads, and the next block fetched while this one is read."""

from __future__ import annotations

import io
import os
import threading
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from typing import Any

from esault.background import in_background
from esault.object_store.store import ObjectStore
from esault.object_store.stored_object import StoredObject

__all__ = ["ObjectFile"]


#: bytes that are fetched at once, and the least of a file that is read here and there
BLOCK, LEAST = 4 * 1024 * 1024, 64 * 1024
#: seconds that `ready` waits at most: less than an idle data loop takes between two reads
_MOMENT = 0.005


class ObjectFile(io.RawIOBase):
    """One version of an object. `ready` says whether a read would not wait. With `blocks=False` each read fetches what it asks for, for
    files that are read here and there. Errors of the store come as its error."""

    def __init__(self, store: ObjectStore, name: str, blocks: bool = True) -> None:
        """`name` is that of a `StoredObject`. Fetches nothing yet."""
        super().__init__()
        self._store, self._object, self._blocks = store, StoredObject.named(name), blocks
        self._place = 0
        #: bytes that are here, and where they begin
        self._held, self._start = b"", 0
        self._next: Future[bytes] | None = None
        self._stop = threading.Event()

    @property
    def size(self) -> int:
        """Return the bytes of the object."""
        return self._object.size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self.size}[whence]
        self._place = max(0, base + offset)
        return self._place

    def ready(self, size: int) -> bool:
        """Return whether the next `size` bytes are here, or an error is; what is missing is being fetched."""
        return self._have(size, _MOMENT)

    def readinto(self, buffer: Any) -> int:
        size = max(0, min(len(buffer), self.size - self._place))
        if self._blocks:
            self._have(size, None)
        elif not self._covers(size):
            end = self._place + max(size, LEAST)
            self._held = self._store.fetch(self._object, self._place, end, self._stop)
            self._start = self._place
        at = self._place - self._start
        data = memoryview(self._held)[at : at + size]
        buffer[: len(data)] = data
        self._place += len(data)
        return len(data)

    def close(self) -> None:
        """Let go of what is here; a wait for the store ends."""
        self._stop.set()
        self._held, self._next = b"", None
        super().close()

    def _covers(self, size: int) -> bool:
        end = min(self._place + size, self.size)
        return self._place >= self.size or self._start <= self._place <= end <= self._start + len(self._held)

    def _have(self, size: int, timeout: float | None) -> bool:
        while not self._covers(size):
            behind = self._start + len(self._held)
            if not self._start <= self._place <= behind:
                self._held, self._start, self._next, behind = b"", self._place, None, self._place
            if self._next is None:
                self._next = self._fetched(behind)
            try:
                more = self._next.result(timeout)
            except NotYet:
                if not self._next.done():
                    return False
                raise
            self._held = self._held[self._place - self._start :] + more
            self._start, behind = self._place, behind + len(more)
            self._next = self._fetched(behind) if behind < self.size else None
        return True

    def _fetched(self, begin: int) -> Future[bytes]:
        return in_background(lambda: self._store.fetch(self._object, begin, begin + BLOCK, self._stop))
