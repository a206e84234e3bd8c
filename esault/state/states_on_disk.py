"""States of keys that have no room in memory: a file of SQLite, which goes with the process that it belongs to.

SQLite comes with Python, keeps what is read often in a cache of its own, and finds a key among hundreds of millions. The file has no
name any more once it is open: nothing is left of it, however the process ends. It is no checkpoint, which is written from it as
from memory.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from esault.errors import StateError
from esault.payload.codec import Codec
from esault.routing.ring import Name, canonical, key_of

__all__ = ["StatesOnDisk", "folder_of_states"]

#: states that are written at once, and their bytes: one by one they would cost three times as much
AT_ONCE, BYTES_AT_ONCE = 256, 1 << 20
#: rows that a scan reads at once: they are not read again where they are taken next
SCANNED = 64
#: kilobytes of the file that SQLite keeps in memory
CACHE = 16 << 10
ON_A_DISK = "/var/tmp"  # noqa: S108 - the file is made by mkstemp, and has no name from then on


def folder_of_states() -> str:
    """The folder for such files: `TMPDIR` where that is said; else /var/tmp, which is on a disk where /tmp may be memory."""
    said = os.environ.get("TMPDIR")
    return said if said else ON_A_DISK if os.access(ON_A_DISK, os.W_OK) else tempfile.gettempdir()


class StatesOnDisk:
    """A mapping from name to packed state, of which the last few are in memory. Used by one thread at a time.

    What is popped will most likely come back: its row stays until then, and is written over.
    """

    def __init__(self, codec: Codec, folder: str | None = None) -> None:
        self._codec = codec
        self._folder = folder
        self._connection: sqlite3.Connection | None = None
        #: those that are not written yet
        self._recent: dict[Name, bytes] = {}
        self._recent_bytes = 0
        #: rows in the file
        self._rows = 0
        #: names that were popped and whose rows are still there -> number of the row, and the hash of the state in it
        self._old: dict[Name, tuple[int, int]] = {}
        #: those of them that do not come back: their rows are removed together
        self._gone: dict[Name, int] = {}
        #: rows that a scan has read, in the file as they are
        self._ahead: dict[Name, tuple[int, bytes]] = {}

    def __len__(self) -> int:
        return len(self._recent) + self._rows - len(self._old)

    def __contains__(self, name: Name) -> bool:
        return self.get(name) is not None

    def __iter__(self) -> Iterator[Name]:
        names = list(self._recent)
        if self._rows:
            unpack, old = self._codec.unpack, self._old
            stored = (canonical(unpack(key)) for (key,) in self._run("SELECT key FROM states"))
            names += [name for name in stored if name not in old]
        return iter(names)

    def __setitem__(self, name: Name, state: bytes) -> None:
        """Keep the state of a name that is not here, or was put last. To look whether it is would cost as much again.

        One that is as it was when it was popped is not written: by its hash, which has 64 bits and a salt of this process.
        Raises OSError where states cannot be written; then it is in memory, and is tried again with the next.
        """
        if self._gone:
            self._gone.pop(name, None)
        if self._ahead:
            self._ahead.pop(name, None)
        old = self._old.get(name)
        if old is not None and old[1] == hash(state):
            del self._old[name]
            return
        self._recent_bytes += len(state)
        self._recent[name] = state
        if len(self._recent) >= AT_ONCE or self._recent_bytes >= BYTES_AT_ONCE:
            self._write()

    def get(self, name: Name, default: None = None, /) -> bytes | None:
        """The state of this name. Raises StateError where it cannot be read."""
        state = self._recent.get(name)
        if state is not None or not self._rows or name in self._old:
            return state
        found = self._row(name)
        return None if found is None else found[1]

    def pop(self, name: Name, default: None, /) -> bytes | None:
        """Take a state out, which may come back. Raises StateError where it cannot be read."""
        state = self._recent.pop(name, None)
        if state is not None:
            self._recent_bytes -= len(state)
            return state
        if not self._rows or name in self._old:
            return None
        found = self._row(name)
        if found is None:
            return None
        row, state = found
        self._ahead.pop(name, None)
        self._old[name] = row, hash(state)
        return state

    def discard(self, name: Name) -> None:
        """Forget a name that does not come back. Raises StateError."""
        self.take(name)

    def take(self, name: Name) -> bytes | None:
        """Take a state out, which does not come back. Raises StateError where it cannot be read."""
        state = self.pop(name, None)
        self.gone(name)
        return state

    def gone(self, name: Name) -> None:
        """Have the row of a name removed that was popped and does not come back. Raises StateError."""
        old = self._old.get(name)
        if old is not None:
            self._gone[name] = old[0]
            if len(self._gone) >= AT_ONCE:
                self._remove()

    def in_memory(self) -> list[Name]:
        """Names of states that are not written yet."""
        return list(self._recent)

    def on_disk(self) -> Iterator[Name]:
        """Names of all that are in the file now, read as they are asked for, while states come and go. Raises StateError.

        Those that have gone meanwhile may be among them, and those that have come.
        """
        last: int = self._run("SELECT max(rowid) FROM states").fetchone()[0] or 0 if self._rows else 0
        return self._scan(last)

    def _scan(self, last: int) -> Iterator[Name]:
        unpack, old, row = self._codec.unpack, self._old, 0
        while row < last and self._rows:
            found = self._run(
                "SELECT rowid, key, state FROM states WHERE rowid > ? AND rowid <= ? ORDER BY rowid LIMIT ?",
                (row, last, SCANNED),
            ).fetchall()
            if not found:
                break
            row = found[-1][0]
            read = ((canonical(unpack(key)), (number, state)) for number, key, state in found)
            self._ahead = {name: there for name, there in read if name not in old and name not in self._recent}
            yield from list(self._ahead)
        self._ahead = {}

    def clear(self) -> None:
        """Forget all."""
        self._recent.clear()
        self._old.clear()
        self._gone.clear()
        self._ahead.clear()
        self._recent_bytes = 0
        if self._rows:
            self._run("DELETE FROM states")
            self._rows = 0

    def close(self) -> None:
        """Close the file, and so remove it."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _row(self, name: Name) -> tuple[int, bytes] | None:
        """Number and state of the row of a name."""
        if name in self._ahead:
            return self._ahead[name]
        found: tuple[int, bytes] | None = self._run(
            "SELECT rowid, state FROM states WHERE key = ?", (self._codec.pack(key_of(name)),)
        ).fetchone()
        return found

    def _remove(self) -> None:
        """Remove the rows of names that do not come back. Raises StateError; then they are removed with the next."""
        self._run_many("DELETE FROM states WHERE rowid = ?", [(row,) for row in self._gone.values()])
        self._rows -= len(self._gone)
        for name in self._gone:
            del self._old[name]
        self._gone.clear()

    def _write(self) -> None:
        """Write what is in memory. Raises OSError; then all of it stays there."""
        pack, old = self._codec.pack, self._old
        changed = [(state, old[name][0]) for name, state in self._recent.items() if name in old]
        new = [(pack(key_of(name)), state) for name, state in self._recent.items() if name not in old]
        try:
            connection = self._connection or self._open()
            with connection:
                connection.execute("BEGIN")
                connection.executemany("UPDATE states SET state = ? WHERE rowid = ?", changed)
                connection.executemany("INSERT OR REPLACE INTO states VALUES (?, ?)", new)
        except (sqlite3.Error, OSError) as error:
            raise OSError(self._said("written", error)) from error
        self._rows += len(new)
        for name in self._recent:
            old.pop(name, None)
        self._recent.clear()
        self._recent_bytes = 0

    def _open(self) -> sqlite3.Connection:
        self._folder = self._folder or folder_of_states()
        file, path = tempfile.mkstemp(".sqlite", "esault-state-", self._folder)
        os.close(file)
        try:
            # A sub-unit may be made in another thread than the one that runs it.
            connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")  # no other process has it, and its name is gone
            connection.execute("PRAGMA journal_mode = MEMORY")
            connection.execute("PRAGMA synchronous = OFF")  # it is of no use to another process
            connection.execute(f"PRAGMA cache_size = -{CACHE}")
            connection.execute("CREATE TABLE states (key BLOB PRIMARY KEY, state BLOB NOT NULL)")
        finally:
            Path(path).unlink()
        self._connection = connection
        return connection

    def _run(self, statement: str, parameters: tuple[bytes | int, ...] = ()) -> sqlite3.Cursor:
        assert self._connection is not None
        try:
            return self._connection.execute(statement, parameters)
        except sqlite3.Error as error:
            raise StateError(self._said("read", error)) from error

    def _run_many(self, statement: str, rows: Sequence[tuple[int, ...]]) -> None:
        assert self._connection is not None
        try:
            with self._connection:
                self._connection.execute("BEGIN")
                self._connection.executemany(statement, rows)
        except sqlite3.Error as error:
            raise StateError(self._said("written", error)) from error

    def _said(self, done: str, error: Exception) -> str:
        return (
            f"states of keys cannot be {done} in {self._folder}: {error}; give it more room, or say another folder on a disk: "
            "TMPDIR=/folder"
        )
