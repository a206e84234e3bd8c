"""The commit log of a landed table: which of the Parquet files in its folder are the table.

```
<table>/part-….parquet                       rows; a part that no entry names is not visible
<table>/_esault_log/00000000000000000000.json            entry 0, 1, 2, ...: see `entry`
<table>/_esault_log/00000000000000000512.snapshot.json   the sum of all entries up to 512: see `state`
<table>/_esault_log/lock                                 held by the run that writes: see `lock`
```

An entry gets its number by a hard link from a temporary file that is already durable: of several writers one gets the
number, the others read its entry and try the next. So the numbers have no gaps, a reader never misses a late lower
one, and an entry is whole or absent. File systems without hard links are refused (see `probe`): the way around, a file
opened with O_EXCL and written after that, would show readers half an entry, and leave it there after a crash.

The design is that of Delta Lake (Armbrust et al., VLDB 2020, sections 3.1-3.2): numbered entries by put-if-absent,
checkpoints of the log, and `txn` so that a replayed epoch is refused.

It is one module of over 300 lines: reading, adding and sealing entries hold one format and one lock.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timezone

from esault.errors import SinkError
from esault.sinks.landing.disk import Disk, LocalDisk, explained, no_links, refusal
from esault.sinks.landing.entry import Entry, Part, decode, encode
from esault.sinks.landing.state import TableState, decode_snapshot, encode_snapshot

__all__ = ["LOG_FOLDER", "CommitLog", "Conflict", "probe", "utc"]

#: name of the log's folder; what begins with "_" is no data to Spark, pyarrow and others
LOG_FOLDER = "_esault_log"

#: seconds after which what this process knows of the log is read anew instead of continued: entries that others
#: have pruned meanwhile (never before hours) must not be written a second time
_STALE = 300.0

_ENTRY = re.compile(r"(\d{20})\.json")
_SNAPSHOT = re.compile(r"(\d{20})\.snapshot\.json")

_logger = logging.getLogger(__name__)


class Conflict(SinkError):
    """An error: what an entry builds on has changed; nothing was written."""


class _Vanished(Exception):
    """A file went between listing and reading: the log was pruned, read it again."""


def utc(seconds: float) -> str:
    """Seconds since the epoch as `2026-01-01T00:00:00Z`."""
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class CommitLog:
    """The log of the table in folder `table`, as one reader or writer sees it."""

    def __init__(
        self,
        table: str,
        disk: Disk | None = None,
        *,
        keep_files: bool = True,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.table = table
        self.folder = os.path.join(table, LOG_FOLDER)
        self._disk: Disk = disk or LocalDisk()
        self._keep_files = keep_files
        self._now = now
        self._read_at = float("-inf")
        self.state = TableState(keep_files)

    # reading

    def exists(self) -> bool:
        """Return whether the table has an entry; reads what is new."""
        return self.refresh().version >= 0

    def refresh(self) -> TableState:
        """The newest state. SinkError: damaged, foreign or newer log, or a gap in it."""
        now = self._now()
        if self.state.version < 0 or not 0 <= now - self._read_at < _STALE:
            self.state = self._load(None, self._keep_files)
        else:
            while (entry := self._entry(self.state.version + 1)) is not None:
                self.state.apply(entry)
        self._read_at = now
        return self.state

    def at(self, version: int | None = None) -> TableState:
        """The state at a version, the newest by default, with its files. SinkError: no such version, or no longer."""
        if version is None and self._keep_files:
            return self.refresh()
        return self._load(version, True)

    def files(self, version: int | None = None) -> list[Part]:
        """The visible parts, in the order in which they came; of an earlier version if one is given. As `at`."""
        files = self.at(version).files
        assert files is not None
        return list(files.values())

    def entries(self, after: int, until: int) -> Iterator[tuple[int, Entry]]:
        """The entries `after` < version <= `until`, in order; SinkError when one is gone."""
        for version in range(after + 1, until + 1):
            entry = self._entry(version)
            if entry is None:
                raise SinkError(
                    f"table {self.table}: entry {version} of its log is no longer kept (vacuum removes old ones), so "
                    f"what came after version {after} cannot be told; start anew from the whole table"
                )
            yield version, entry

    def entry_path(self, version: int) -> str:
        """Return the path of an entry."""
        return os.path.join(self.folder, f"{version:020d}.json")

    def snapshot_path(self, version: int) -> str:
        """Return the path of a snapshot."""
        return os.path.join(self.folder, f"{version:020d}.snapshot.json")

    def listing(self) -> tuple[list[int], list[int]]:
        """Versions of all entries and of all snapshots, each in order."""
        try:
            names = self._disk.names(self.folder)
        except FileNotFoundError:
            return [], []
        except OSError as error:
            raise refusal("reading", self.folder, error) from error
        entries = sorted(int(match[1]) for name in names if (match := _ENTRY.fullmatch(name)))
        snapshots = sorted(int(match[1]) for name in names if (match := _SNAPSHOT.fullmatch(name)))
        return entries, snapshots

    def _entry(self, version: int) -> Entry | None:
        """One entry; None when it is not there."""
        path = self.entry_path(version)
        try:
            data = self._disk.read(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise refusal("reading", path, error) from error
        return decode(data, path)

    def _load(self, version: int | None, keep_files: bool) -> TableState:
        for _ in range(5):
            try:
                return self._load_once(version, keep_files)
            except _Vanished:
                continue
        raise SinkError(
            f"table {self.table}: its log changes faster than it can be read; does something else remove "
            f"files in {self.folder}?"
        )

    def _load_once(self, version: int | None, keep_files: bool) -> TableState:
        entries, snapshots = self.listing()
        newest = max(entries[-1:] + snapshots[-1:], default=-1)
        if version is not None and not 0 <= version <= newest:
            raise SinkError(f"table {self.table} has no version {version}; its versions are 0 to {newest}")
        state = self._base(entries, [s for s in snapshots if version is None or s <= version], keep_files, version)
        while version is None or state.version < version:
            entry = self._entry(state.version + 1)
            if entry is not None:
                state.apply(entry)
            elif state.version >= newest:
                break
            else:
                # either pruned since the listing, then a newer snapshot stands for it, or lost
                again, snapshots_again = self.listing()
                if state.version + 1 not in again and snapshots_again[-1:] == snapshots[-1:]:
                    raise SinkError(
                        f"table {self.table}: entry {state.version + 1} of its log is missing, while {newest} "
                        f"is there. Restore {self.folder} from a backup; without it there is no telling which rows "
                        "are the table's"
                    )
                raise _Vanished
        return state

    def _base(self, entries: list[int], snapshots: list[int], keep_files: bool, version: int | None) -> TableState:
        """The newest snapshot that can be read, or the state before entry 0."""
        failure: SinkError | None = None
        for snapshot in reversed(snapshots):
            path = self.snapshot_path(snapshot)
            try:
                return decode_snapshot(self._disk.read(path), path, keep_files)
            except FileNotFoundError:
                raise _Vanished from None
            except OSError as error:
                raise refusal("reading", path, error) from error
            except SinkError as error:
                _logger.warning("%s; it is left out", error)
                failure = failure or error
        if not entries or entries[0] == 0:
            return TableState(keep_files)
        if failure is not None:
            raise failure
        if version is not None:
            raise SinkError(
                f"table {self.table}: version {version} is no longer kept; the oldest entry of its log is {entries[0]}"
            )
        raise SinkError(
            f"table {self.table}: its log begins with entry {entries[0]}, and no snapshot stands for those before. "
            f"Restore {self.folder} from a backup"
        )

    # writing

    def append(self, entry: Entry, guard: Callable[[TableState], None] | None = None) -> int | None:
        """Add an entry, durably: its version, or None when its `txn` is in the log already.

        `guard` may refuse the entry; it is asked about the state that the entry would follow, again after each lost
        race. SinkError: the disk refuses, or the table is gone. Conflict: a part to be removed is not visible (any
        more), or the table exists (`create`). After an error it may be tried again.
        """
        scratch: str | None = None
        try:
            while True:
                read_at = self._now()
                state = self.refresh()
                if entry.txn is not None and state.has(entry.txn):
                    self._sync()  # its writer may have died before it did
                    return None
                self._check(entry, state)
                if guard is not None:
                    guard(state)
                if scratch is None:
                    scratch = self._write_scratch(entry)
                version = state.version + 1
                try:
                    taken = self._link(scratch, version)
                except FileNotFoundError:  # vacuum took the scratch file of a writer that slept for days
                    scratch = None
                    continue
                if taken and self._took(version, read_at):
                    break
        finally:
            if scratch is not None:
                with contextlib.suppress(OSError):  # vacuum will find it
                    self._disk.remove(scratch)
        self._sync()
        if state.apply(entry):
            self._snapshot(version)
        return version

    def _check(self, entry: Entry, state: TableState) -> None:
        if entry.kind == "create" and state.version >= 0:
            raise Conflict(f"table {self.table} exists already")
        if entry.kind != "create" and state.version < 0:
            raise SinkError(
                f"table {self.table} is gone: its log {self.folder} has no entry. Was it removed while in use?"
            )
        if entry.remove:
            assert state.files is not None, "a log that removes parts must keep files"
            gone = [name for name in entry.remove if name not in state.files]
            if gone:
                raise Conflict(f"table {self.table}: part {gone[0]} is no longer visible; another writer replaced it")

    def _write_scratch(self, entry: Entry) -> str:
        scratch = os.path.join(self.folder, f".{os.urandom(8).hex()}.tmp")
        with explained("writing", scratch):
            self._disk.write_new(scratch, encode(entry))
        return scratch

    def _link(self, scratch: str, version: int) -> bool:
        path = self.entry_path(version)
        try:
            return self._disk.link(scratch, path)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise refusal("writing", path, error) from error

    def _took(self, version: int, read_at: float) -> bool:
        """Return whether the linked entry counts. It does, unless this process slept so long after it had read the log that
        the number was written and pruned meanwhile: then its predecessor is gone, and the entry is not looked for."""
        if 0 <= self._now() - read_at < _STALE or version == 0:
            return True
        entries, snapshots = self.listing()
        if version - 1 in entries or version - 1 in snapshots[-1:]:
            return True
        with explained("removing", self.entry_path(version)):
            self._disk.remove(self.entry_path(version))
        self.state = TableState(self._keep_files)
        return False

    def _sync(self) -> None:
        with explained("writing", self.folder):
            self._disk.sync_folder(self.folder)

    def _snapshot(self, version: int) -> None:
        """Write the snapshot that is due. Failing to is no failure of the commit: a later one will be written."""
        try:
            state = self.state if self._keep_files else self._load(version, True)
            self.write_snapshot(state)
        except SinkError as error:
            _logger.warning("no snapshot of the log of table %s: %s", self.table, error)

    def write_snapshot(self, state: TableState) -> None:
        """Make the snapshot of `state`, which keeps its files, the one to start from. SinkError: the disk refuses."""
        path = self.snapshot_path(state.version)
        scratch = os.path.join(self.folder, f".{os.urandom(8).hex()}.tmp")
        with explained("writing", path):
            self._disk.write_new(scratch, encode_snapshot(state))
            self._disk.rename(scratch, path)


def probe(folder: str, disk: Disk) -> None:
    """SinkError when `folder`, which exists, cannot be written, or has no hard links."""
    first = os.path.join(folder, f".{os.urandom(8).hex()}.tmp")
    second = f"{first}.link"
    try:
        disk.write_new(first, b"")
        try:
            disk.link(first, second)
        except OSError as error:
            if not no_links(error):
                raise
            raise SinkError(
                f"{folder} is on a file system without hard links ({error.strerror}), which the log needs so that two "
                "writers never take the same number. Land the table on a local disk (ext4, xfs, btrfs, APFS) or NFS"
            ) from error
        finally:
            disk.remove(second)
            disk.remove(first)
    except OSError as error:
        raise refusal("writing", folder, error) from error
