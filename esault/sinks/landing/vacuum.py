"""Removing from disk what no reader needs any more."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from esault.errors import SinkError
from esault.sinks.landing.disk import Disk, LocalDisk, explained
from esault.sinks.landing.log import CommitLog

__all__ = ["SAFE_AGE", "Vacuumed", "prune", "remove_parts", "vacuum"]

#: seconds; a week, so that a run can be resumed, a stream restarted and a long query finished until then
SAFE_AGE = 7 * 86400.0

_PART = re.compile(r"(part-[0-9a-f]{32}\.parquet|\.[0-9a-f]+\.tmp(\.link)?)")
#: entries since the last snapshot that make vacuum write one
_WORTH_A_SNAPSHOT = 32
_SCRATCH = re.compile(r"\.[0-9a-f]+\.tmp(\.link)?")


@dataclass(frozen=True)
class Vacuumed:
    """The number of files of each kind that went."""

    parts: int
    entries: int


def vacuum(
    table: str, older_than: float = SAFE_AGE, *, disk: Disk | None = None, now: Callable[[], float] = time.time
) -> Vacuumed:
    """Remove parts that are not visible and entries that a snapshot stands for, if older than `older_than` seconds.

    Safe beside writers and readers as long as none of them takes `older_than` seconds for one step: a part is not
    visible between `prepare` and `commit`, and a reader reads the parts it listed before. Only files with the names
    that eSault gives are touched. SinkError when there is no table, or the disk refuses.
    """
    disk = disk or LocalDisk()
    log = CommitLog(table, disk, now=now)
    limit = now() - older_than
    # listed before the log is read: what is committed in between is visible then, and stays
    with explained("reading", table):
        candidates = list(_parts(disk, table))
    if not log.exists():
        raise SinkError(f"{table} is no table of eSault: it has no log")
    visible = {part.path for part in log.files()}
    parts = _remove(disk, table, (name for name in candidates if name not in visible), limit)
    return Vacuumed(parts, _prune(log, disk, limit))


def prune(log: CommitLog, disk: Disk, older_than: float = SAFE_AGE, now: Callable[[], float] = time.time) -> int:
    """Remove entries and snapshots that a later snapshot stands for, if as old; return how many. Raises SinkError.

    Of a run that never ends: its parts are all visible, but its log gets an entry with each checkpoint.
    """
    return _prune(log, disk, now() - older_than)


def _parts(disk: Disk, table: str, folder: str = "") -> Iterator[str]:
    """Paths of all parts and scratch files of parts, those in folders `column=value` too."""
    for name in disk.names(os.path.join(table, folder) if folder else table):
        path = f"{folder}/{name}" if folder else name
        if _PART.fullmatch(name):
            yield path
        elif "=" in name:
            with contextlib.suppress(NotADirectoryError):
                yield from _parts(disk, table, path)


def _prune(log: CommitLog, disk: Disk, limit: float) -> int:
    """Remove old entries, old snapshots and scratch files; the newest two snapshots, and all entries after the older
    of them, stay: should the newest be damaged, the table can still be read."""
    entries, snapshots = log.listing()
    if log.state.version - max(snapshots, default=-1) >= _WORTH_A_SNAPSHOT:
        log.write_snapshot(log.state)
        snapshots.append(log.state.version)
    base = snapshots[-2] if len(snapshots) > 1 else -1
    old = (log.entry_path(version) for version in entries if version <= base)
    with explained("reading", log.folder):
        # from the oldest on and without holes, so that the oldest entry tells what is still kept
        names = [os.path.basename(path) for path in itertools.takewhile(lambda path: disk.modified(path) <= limit, old)]
        names += [os.path.basename(log.snapshot_path(version)) for version in snapshots if version < base]
        names += [name for name in disk.names(log.folder) if _SCRATCH.fullmatch(name)]
    return _remove(disk, log.folder, names, limit)


def _remove(disk: Disk, folder: str, names: Iterable[str], limit: float) -> int:
    """Remove those of the files that were last written before `limit`; how many those were."""
    removed = 0
    for name in names:
        path = os.path.join(folder, name)
        with explained("removing", path):
            try:
                if disk.modified(path) > limit:
                    continue
            except FileNotFoundError:
                continue
            disk.remove(path)
            removed += 1
    return removed


def remove_parts(table: str, names: Iterable[str], disk: Disk) -> None:
    """Remove parts that are known not to be visible, such as those of a table that was replaced."""
    for name in names:
        with explained("removing", os.path.join(table, name)):
            disk.remove(os.path.join(table, name))
