"""Frames that only a process of this run can make, and a reader that gives up at the first byte of any other.

A frame is `<decimal length>` `>` body; body = 16 bytes (digest of the length), 32 bytes (digest of the pickle), pickle.
Both digests are keyed BLAKE2b (RFC 7693) under keys derived from the run's secret. The one of the length is checked as
soon as it has been read, so that no other process can make a process keep more than one read's bytes; the one of the pickle
before it is loaded. Nothing else is ever unpickled.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import pickle
import time

__all__ = ["MAX_FRAME", "Refusals", "SignedBuffer", "Signer"]

#: the largest body of a frame, in bytes
MAX_FRAME = 64 * 1024 * 1024
_HEAD, _MAC = 16, 32
_MAX_DIGITS = len(str(MAX_FRAME))


class Refusals:
    """The count of connections that this process has refused; one log line per second at most."""

    def __init__(self) -> None:
        self.count = 0
        self._logged, self._logged_at = 0, -1.0

    def note(self, why: str) -> None:
        self.count += 1
        now = time.monotonic()
        if now - self._logged_at >= 1.0:
            new = self.count - self._logged
            self._logged, self._logged_at = self.count, now
            logging.getLogger(__name__).warning(
                "refused %d connection%s to the actor system that came from outside this run; the last: %s",
                new,
                "" if new == 1 else "s",
                why,
            )


class Signer:
    """Takes the place of `pickle` in Thespian's TCP transport: `dumps` signs, `loads` checks first."""

    def __init__(self, secret: bytes) -> None:
        self._head = hashlib.blake2b(secret, person=b"esault-head", digest_size=32).digest()
        self._body = hashlib.blake2b(secret, person=b"esault-body", digest_size=32).digest()

    def _head_of(self, size: int) -> bytes:
        return hashlib.blake2b(b"%d" % size, key=self._head, digest_size=_HEAD).digest()

    def _mac_of(self, payload: bytes | memoryview) -> bytes:
        return hashlib.blake2b(payload, key=self._body, digest_size=_MAC).digest()

    def signs_length(self, body: bytearray, size: int) -> bool:
        """Return whether a body that begins so is signed for this length."""
        return hmac.compare_digest(bytes(body[:_HEAD]), self._head_of(size))

    def signs(self, body: bytes | bytearray) -> bool:
        """Return whether this body's pickle is signed."""
        with memoryview(body) as view:
            return hmac.compare_digest(view[_HEAD : _HEAD + _MAC], self._mac_of(view[_HEAD + _MAC :]))

    def dumps(self, message: object) -> bytes:
        """The body of the frame for a message. Raises `ValueError` for one larger than `MAX_FRAME`."""
        payload = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
        size = _HEAD + _MAC + len(payload)
        if size > MAX_FRAME:
            raise ValueError(f"a control message of {size:,} bytes; {MAX_FRAME:,} is the most that may be sent")
        return b"".join((self._head_of(size), self._mac_of(payload), payload))

    def loads(self, body: bytes | bytearray) -> object:
        """The message in a signed body. Raises `PermissionError`, before unpickling, for any other."""
        if not self.signs(body):
            raise PermissionError("a frame that is not signed with this run's secret")
        return pickle.loads(memoryview(body)[_HEAD + _MAC :])


class SignedBuffer:
    """Collects one frame. Has the methods of Thespian's `ReceiveBuffer`, whose place it takes.

    It never raises for what a peer sends: then `refused` is set, and it is done and completed with None.
    """

    def __init__(self, signer: Signer, refusals: Refusals) -> None:
        self._signer, self._refusals = signer, refusals
        self._data = bytearray()
        self._size: int | None = None
        self._head_seen = False
        self._extra = b""
        self.refused = False

    def addMore(self, new: bytes) -> None:
        """Take what was read from the socket."""
        if self.refused:
            return
        if self._size is not None and len(self._data) == self._size:
            self._extra += new
            return
        self._data += new
        if self._size is None:
            self._size = self._read_size()
            if self._size is None:
                return
        if not self._head_seen and len(self._data) >= _HEAD:
            if not self._signer.signs_length(self._data, self._size):
                self._refuse("a length that is not signed with this run's secret")
                return
            self._head_seen = True
        if len(self._data) >= self._size:
            self._extra = bytes(self._data[self._size :])
            del self._data[self._size :]
            if not self._signer.signs(self._data):
                self._refuse("a frame that is not signed with this run's secret")

    def _read_size(self) -> int | None:
        """Split the length off; None when it is not all there, or refused."""
        mark = self._data.find(b">", 0, _MAX_DIGITS + 1)
        if mark < 0:
            if len(self._data) > _MAX_DIGITS:
                self._refuse("no length at the start of a frame")
            return None
        digits = bytes(self._data[:mark])
        del self._data[: mark + 1]
        if not digits.isdigit() or not _HEAD + _MAC < int(digits) <= MAX_FRAME:
            self._refuse("an impossible length")
            return None
        return int(digits)

    def _refuse(self, why: str) -> None:
        self.refused = True
        self._data, self._extra = bytearray(), b""
        self._refusals.note(why)

    def remainingAmount(self) -> int:
        """Return the number of bytes to read next; the first time few enough to stay within the smallest frame."""
        return 20 if self._size is None else max(1, self._size - len(self._data))

    def is_empty(self) -> bool:
        """Return whether nothing has come yet."""
        return self._size is None and not self._data and not self.refused

    def isDone(self) -> bool:
        """Return whether there is nothing more to read: complete, or refused."""
        return self.refused or (self._size is not None and len(self._data) == self._size)

    def removeExtra(self) -> None:
        """Forget the bytes behind the frame."""
        self._extra = b""

    def completed(self) -> tuple[object, bytes] | None:
        """(message, bytes behind it); None while incomplete or when refused."""
        if self.refused or not self.isDone():
            return None
        # addMore has checked the signature
        return pickle.loads(memoryview(self._data)[_HEAD + _MAC :]), self._extra
