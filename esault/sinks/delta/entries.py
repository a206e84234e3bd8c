"""The entries of a Delta table's log as files: made durable, and looked at where the library cannot read them."""

from __future__ import annotations

import contextlib
import json
import os

from esault.errors import SinkError
from esault.sinks.landing.disk import LocalDisk, explained

__all__ = ["Entries"]


class Entries:
    """Those of one table."""

    def __init__(self, table: str, disk: LocalDisk) -> None:
        self._table = table
        self._folder = os.path.join(table, "_delta_log")
        self._disk = disk
        #: version up to which they are durable
        self._synced = -1

    def sync(self, version: int) -> None:
        """Make them durable up to this version, and checkpoints of the log that the library made of them. Raises SinkError."""
        if version == self._synced:
            return
        with explained("making durable", self._folder):
            for name in self._disk.names(self._folder):
                number = name.partition(".")[0]
                if name == "_last_checkpoint" or (number.isdigit() and self._synced < int(number) <= version):
                    with contextlib.suppress(FileNotFoundError):
                        descriptor = os.open(os.path.join(self._folder, name), os.O_RDONLY | os.O_CLOEXEC)
                        try:
                            os.fsync(descriptor)
                        finally:
                            os.close(descriptor)
            self._disk.sync_folder(self._folder)
            self._disk.sync_folder(self._table)
        self._synced = version

    def explained(self, error: Exception) -> SinkError:
        """The error for a table that cannot be read: mostly its last entry is not whole, since power was lost."""
        with contextlib.suppress(OSError):
            entries = sorted(
                name for name in os.listdir(self._folder) if name.endswith(".json") and name[:20].isdigit()
            )
            last = os.path.join(self._folder, entries[-1]) if entries else None
            if last is not None and not _whole(last):
                return SinkError(
                    f"Delta table {self._table} cannot be read: the last entry of its log is not whole ({last}), as after a "
                    "power cut. No run has gone on behind it; move it away, and resume: what it held is committed again"
                )
        return SinkError(f"Delta table {self._table} cannot be read: {error}")


def _whole(path: str) -> bool:
    """Return whether an entry is lines of JSON."""
    try:
        with open(path, "rb") as file:
            lines = file.read().splitlines()
        for line in lines:
            json.loads(line)
    except ValueError:
        return False
    return bool(lines)
