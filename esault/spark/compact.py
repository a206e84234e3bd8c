"""Few large parts in place of many small ones. A reader of 1 000 parts of 500 rows is 25 times slower than of one.

Safe beside the run that writes the table, beside readers and beside another compaction: one log entry removes the old
parts and adds the new one, and only if all old ones are still visible. Their files stay until `vacuum`. pyarrow does
it; Spark is not needed. `cluster_compaction` does the same by the executors of a cluster.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from esault.counters import counted
from esault.errors import SinkError, UsageError
from esault.sinks.landing import table_log
from esault.sinks.landing.compaction import compact_all, replace_parts, write_part
from esault.sinks.landing.disk import Disk, LocalDisk
from esault.sinks.landing.entry import Part
from esault.sinks.landing.log import CommitLog, Conflict
from esault.sinks.landing.merge import first_of_each

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["TARGET_BYTES", "Compacted", "compact", "neighbours"]

#: a new part has at most about this many bytes, and rows: both fit into memory some times over
TARGET_BYTES = 64 * 2**20
TARGET_ROWS = 2_000_000


@dataclass(frozen=True)
class Compacted:
    """The outcome of a compaction: parts before and after, and rows that were repetitions and went."""

    before: int
    after: int
    duplicates: int


def compact(
    path: str | os.PathLike[str],
    target_bytes: int = TARGET_BYTES,
    drop_duplicates: bool = True,
    say: Callable[[str], None] = lambda text: None,
    disk: Disk | None = None,
    only: Collection[str] | None = None,
) -> Compacted:
    """Rewrite neighbouring small parts of the table in folder `path` as parts of up to `target_bytes`.

    `drop_duplicates`: of rows with the same `_run` and `_id` that come into one new part, the first stays. `only`:
    leave all parts but these as they are. SinkError when there is no table, a part cannot be read, or the disk refuses; what was done until then stays done.
    """
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise UsageError("compaction needs pyarrow: pip install 'esault[parquet]'") from None
    disk = disk or LocalDisk()
    log = table_log(path)
    before = log.files()
    if log.state.primary_key:
        return _compact_newest(log, disk, before, say)
    duplicates = 0
    folders: dict[str, list[Part]] = {}
    for part in before:
        if only is None or part.path in only:
            folders.setdefault(os.path.dirname(part.path), []).append(part)
    for group in (group for parts in folders.values() for group in neighbours(parts, target_bytes)):
        say(f"compacting {counted(len(group), 'part')} of {log.table} ...")
        try:
            duplicates += _rewrite(log, disk, group, drop_duplicates)
        except Conflict:
            # another compaction, or a new run that replaces the table, has been here: it is done, or no use any more
            continue
    return Compacted(len(before), len(log.files()), duplicates)


def _compact_newest(log: CommitLog, disk: Disk, before: Sequence[Part], say: Callable[[str], None]) -> Compacted:
    """All parts of a table with a primary key, of each key the newest row; rows that are older count as repetitions."""
    say(f"compacting {counted(len(before), 'part')} of {log.table} ...")
    with contextlib.suppress(Conflict):
        compact_all(log, disk, time.time())
    after = log.files()
    return Compacted(len(before), len(after), sum(part.rows for part in before) - sum(part.rows for part in after))


def neighbours(parts: Sequence[Part], target_bytes: int, target_rows: int = TARGET_ROWS) -> Iterator[list[Part]]:
    """Neighbours that are small, together up to the target; at least two."""
    group: list[Part] = []
    size = rows = 0
    for part in parts:
        small = part.bytes <= target_bytes // 2 and part.rows <= target_rows // 2
        if group and (not small or size + part.bytes > target_bytes or rows + part.rows > target_rows):
            if len(group) > 1:
                yield group
            group, size, rows = [], 0, 0
        if small:
            group.append(part)
            size, rows = size + part.bytes, rows + part.rows
    if len(group) > 1:
        yield group


def _rewrite(log: CommitLog, disk: Disk, group: Sequence[Part], drop_duplicates: bool) -> int:
    """One new part for the group, or one for each set of columns in it; how many repetitions went. Conflict when the
    group is no longer visible."""
    tables = _read(log.table, group)
    if len(tables) == len(group):
        return 0  # each has columns of its own
    folder = os.path.dirname(group[0].path)
    parts, dropped = [], 0
    for table in tables:
        kept = first_of_each(table) if drop_duplicates else table
        dropped += int(table.num_rows - kept.num_rows)
        parts.append(write_part(log.table, disk, folder, kept))
    replace_parts(log, disk, group, parts)
    return dropped


def _read(folder: str, group: Sequence[Part]) -> list[pa.Table]:
    """The rows of the group, one table for each set of columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables: dict[pa.Schema, list[pa.Table]] = {}
    for part in group:
        path = os.path.join(folder, part.path)
        try:
            table = pq.read_table(path, partitioning=None)
        except (OSError, pa.ArrowInvalid) as error:
            raise SinkError(f"{path} cannot be read ({error}); its table is not compacted") from error
        if table.num_rows != part.rows:
            raise SinkError(
                f"{path} has {table.num_rows} rows, and the log says {part.rows}; its table is not compacted"
            )
        tables.setdefault(table.schema.remove_metadata(), []).append(table)
    return [pa.concat_tables(same) for same in tables.values()]
