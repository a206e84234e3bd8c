"""The way of rows from the sub-units to the one process that clients are connected to: a socket of this machine."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future

__all__ = ["Link", "Received", "place"]

#: bytes of rows that wait in a sub-unit: beyond they are dropped
MOST_WAITING = 16 << 20
#: seconds that the last rows have to get across at the end
LAST_WAIT = 2.0
#: before each row: its length, that of its event's name, and how many rows were dropped before it
_HEAD = struct.Struct(">IHI")


def place(run: str, sink: str) -> str:
    """Return the address of a sink's server: an abstract socket of Linux, which is gone with its process."""
    name = hashlib.blake2b(f"{run}/{sink}".encode(), digest_size=16).hexdigest()  # an address has 107 bytes at most
    return f"\0esault-push-{name}"


class Link:
    """Rows of one sub-unit on their way: handed over at once, sent by a thread. Nothing waits for it; what is too much is dropped."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._changed = threading.Condition()
        self._waiting: deque[bytes] = deque()
        self._bytes = self._dropped = 0
        self._over = False
        #: of those who wait until all that they have put is sent
        self._asked: list[Future[None]] = []
        #: why rows do not get across
        self.error: OSError | None = None
        self._thread = threading.Thread(target=self._send, name="esault-push", daemon=True)
        self._thread.start()

    def put(self, rows: Sequence[tuple[str, str]]) -> int:
        """Take (event, data) pairs; return how many of them were dropped."""
        dropped = 0
        with self._changed:
            for event, data in rows:
                name, text = event.encode(), data.encode()
                if self._bytes + len(text) > MOST_WAITING:
                    dropped += 1
                    self._dropped += 1
                    continue
                self._waiting.append(_HEAD.pack(len(text), len(name), self._dropped) + name + text)
                self._bytes += len(text)
                self._dropped = 0
            self._changed.notify()
        return dropped

    def sent(self) -> Future[None]:
        """Return what is done when all that was put is sent: then it arrives, also if this process dies."""
        asked: Future[None] = Future()
        with self._changed:
            if self.error is not None:
                asked.set_exception(self.error)
            else:
                self._asked.append(asked)
                self._changed.notify()
        return asked

    def close(self) -> None:
        """Send what waits, for a while, and end."""
        with self._changed:
            self._over = True
            self._changed.notify()
        self._thread.join(LAST_WAIT)

    def _send(self) -> None:
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
                sock.connect(self._address)
                while True:
                    with self._changed:
                        self._changed.wait_for(lambda: self._waiting or self._asked or self._over)
                        if not self._waiting and not self._asked:
                            return
                        data, asked = b"".join(self._waiting), self._asked
                        self._waiting.clear()
                        self._bytes, self._asked = 0, []
                    try:
                        sock.sendall(data)
                    except OSError:
                        with self._changed:
                            self._asked = [*asked, *self._asked]
                        raise
                    for future in asked:
                        future.set_result(None)
        except OSError as error:
            with self._changed:
                self.error = error
                for future in self._asked:
                    future.set_exception(error)


class Received(asyncio.Protocol):
    """The other end: calls `take(event, data, dropped before)` for each row, and `wake` behind those that came together."""

    def __init__(
        self, take: Callable[[str, str, int], None], wake: Callable[[], None], open: set[asyncio.BaseTransport]
    ) -> None:
        """`open`: the connections that there are, for who ends them."""
        self._take, self._wake, self._open = take, wake, open
        self._transport: asyncio.BaseTransport | None = None
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Refuse rows of other users: the address is open to all of this machine."""
        self._transport = transport
        self._open.add(transport)
        credentials = transport.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        if struct.unpack("3i", credentials)[1] != os.geteuid():
            with contextlib.suppress(AttributeError):
                transport.abort()  # type: ignore[attr-defined]

    def connection_lost(self, error: Exception | None) -> None:
        """Forget it."""
        if self._transport is not None:
            self._open.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        """Take the rows that are whole."""
        data, at = self._rest + data, 0
        while len(data) - at >= _HEAD.size:
            length, named, dropped = _HEAD.unpack_from(data, at)
            begin = at + _HEAD.size + named
            if len(data) < begin + length:
                break
            self._take(data[at + _HEAD.size : begin].decode(), data[begin : begin + length].decode(), dropped)
            at = begin + length
        self._rest = data[at:]
        self._wake()
