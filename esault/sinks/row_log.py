"""The log of one writer: rows on their way to a visible file, durable before they are shown."""

from __future__ import annotations

import os

from esault.sinks.durable import sync_folder, unwritable, write_fully

__all__ = ["RowLog"]

#: bytes kept in memory until they are written
_BUFFER = 1024 * 1024


class RowLog:
    """An append-only file that one object writes. Raises SinkError; then the file is as if the call had not been."""

    def __init__(self, path: str) -> None:
        """Makes the file, which must not exist."""
        self.path = path
        self.name = os.path.basename(path)
        self._buffer = bytearray()
        self._written = 0
        self.closed = False
        try:
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o666)
            sync_folder(os.path.dirname(path))
        except OSError as error:
            raise unwritable(path, error) from error

    @property
    def size(self) -> int:
        """Bytes that were given to `write`."""
        return self._written + len(self._buffer)

    def write(self, data: bytes) -> None:
        """Append; not durable before `sync`."""
        self._buffer += data
        if len(self._buffer) > _BUFFER:
            self._flush()

    def flush(self) -> int:
        """Hand all that was written to the system; returns how many bytes that are."""
        self._flush()
        return self._written

    def sync(self) -> None:
        """Make what was flushed durable; any thread may call this."""
        try:
            os.fsync(self._fd)
        except OSError as error:
            raise unwritable(self.path, error) from error

    def close(self) -> None:
        """Close the file; it may be closed already."""
        if not self.closed:
            self.closed = True
            os.close(self._fd)

    def _flush(self) -> None:
        try:
            write_fully(self._fd, bytes(self._buffer))
        except OSError as error:
            os.ftruncate(self._fd, self._written)
            raise unwritable(self.path, error) from error
        self._written += len(self._buffer)
        self._buffer.clear()
