"""Messages that a checkpoint keeps: for systems where nothing can be staged, such as queues."""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from esault.errors import SinkError
from esault.payload.codec import Codec

__all__ = ["MessagePacker", "unpacked"]

#: bytes of a handle at most: it goes through the driver, into the checkpoint
LARGEST = 48 << 20


class MessagePacker:
    """Makes handles of messages, beside the data loop where a checkpoint keeps them."""

    def __init__(self, who: str, kept: bool) -> None:
        """`kept`: by checkpoints. Without, a handle stays in its process, and messages are in it as they are."""
        self._who, self._kept = who, kept
        self._thread: ThreadPoolExecutor | None = None

    def handle(self, messages: Sequence[Any]) -> tuple[str, Any]:
        """Return (token, what `prepare` returns): the handle, or a Future of it. `unpacked` reads it."""
        token = uuid.uuid4().hex
        if not self._kept:
            return token, (token, messages)
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, f"esault {self._who}")
        return token, self._thread.submit(self._pack, token, messages)

    def _pack(self, token: str, messages: Sequence[Any]) -> tuple[str, bytes]:
        data = zlib.compress(Codec().pack(messages), 1)
        if len(data) > LARGEST:
            raise SinkError(
                f"{self._who}: the rows of a checkpoint take {len(data) >> 20} MiB in one sub-unit, and {LARGEST >> 20} MiB can be: take "
                "checkpoints more often, or give the unit before the sink more sub-units"
            )
        return token, data

    def close(self) -> None:
        """End its thread."""
        if self._thread is not None:
            self._thread.shutdown(wait=False)
            self._thread = None


def unpacked(kept: Any) -> Any:
    """Return the messages of a handle."""
    return Codec().unpack(zlib.decompress(kept)) if isinstance(kept, bytes) else kept
