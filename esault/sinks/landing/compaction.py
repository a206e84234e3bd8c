"""Keeping a table with a primary key small: parts are merged while the run goes on, so that reading stays cheap.

Reading such a table merges its parts (merge-on-read), so it costs what all visible rows cost. Two rules hold that down.
*Tiers*: of parts of about the same number of rows, as soon as there are `MOST`, one is made (as a log-structured merge
tree does with its runs). *Whole*: as soon as the rows on top of the last whole compaction are `TIMES` as many as in it,
and more than `FEW_ROWS`, all parts are merged. So reading costs a few times what the keys cost, and a row is rewritten
once or twice. More would cost more than it spares: with 16 parts and one time, counting the words of Python's library
took half as much processor time again.

A whole compaction of more than `TARGET_ROWS` goes by ranges of the first column of the key, one after the other: memory
holds one range. Deletions that are older than a week go in it; until then they stay, for the sake of rows that a run
which is resumed still has to commit.

It is safe beside writers, readers and another compaction: one entry of the log takes the old parts away and adds the
new ones, if all old ones are still visible. Each row says how new it is, so parts that come later may be older.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from esault.errors import SinkError
from esault.sinks.landing.arrow import parquet_bytes
from esault.sinks.landing.disk import Disk, LocalDisk, explained
from esault.sinks.landing.entry import Entry, Part
from esault.sinks.landing.log import LOG_FOLDER, CommitLog, Conflict, utc
from esault.sinks.landing.merge import newest_of_each, read_parts, there
from esault.sinks.landing.state import TableState
from esault.sinks.landing.vacuum import SAFE_AGE, remove_parts

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Compactor", "alone", "compact_all", "compact_some", "replace_parts", "write_part"]

#: parts of one tier that are made one
MOST = 128
#: rows on top of a whole compaction, as a multiple of those in it, from which there is another one
TIMES = 4
#: rows that no whole compaction is worth
FEW_ROWS = 1_000_000
#: commits between two looks
_LOOK_EVERY = 16
#: rows of the lowest tier; each tier above holds eight times as many
LOWEST = 4096
#: rows that are merged in memory at once, about
TARGET_ROWS = 2_000_000
#: seconds for which parts that were merged stay, for those who read them
KEEP = 3600.0

_logger = logging.getLogger(__name__)


def write_part(table: str, disk: Disk, folder: str, rows: pa.Table, base: bool = False) -> Part:
    """A part of the rows that no reader knows of yet."""
    data = parquet_bytes(rows)
    part = Part(os.path.join(folder, f"part-{os.urandom(16).hex()}.parquet"), rows.num_rows, data.size, base)
    path = os.path.join(table, part.path)
    scratch = os.path.join(table, folder, f".{os.urandom(8).hex()}.tmp")
    with explained("writing", path):
        disk.write_new(scratch, memoryview(data))
        disk.rename(scratch, path)
        disk.sync_folder(os.path.dirname(path))
    return part


def compact_some(log: CommitLog, disk: Disk, now: float) -> list[str]:
    """Do what the rules ask for, if anything; names of the parts that went. SinkError; Conflict: another was faster."""
    state = log.refresh()
    assert state.files is not None
    base = [part for part in state.files.values() if part.base]
    rest = [part for part in state.files.values() if not part.base]
    if sum(part.rows for part in rest) > max(TIMES * sum(part.rows for part in base), FEW_ROWS):
        return compact_all(log, disk, now)
    tiers: dict[int, list[Part]] = {}
    for part in rest:
        tiers.setdefault(_tier(part.rows), []).append(part)
    for tier in sorted(tiers):
        if len(tiers[tier]) >= MOST:
            # the tiers below come with it: their rows are few
            return _merge(log, disk, state, [part for below in sorted(tiers) if below <= tier for part in tiers[below]])
    return []


def _tier(rows: int) -> int:
    tier = 0
    while rows > LOWEST << (3 * tier):
        tier += 1
    return tier


def _merge(log: CommitLog, disk: Disk, state: TableState, parts: Sequence[Part]) -> list[str]:
    rows = 0
    group: list[Part] = []
    for part in parts:
        if len(group) > 1 and rows + part.rows > TARGET_ROWS:
            break
        group.append(part)
        rows += part.rows
    table = newest_of_each(read_parts(log.table, group, state.schema), state.primary_key)
    return replace_parts(log, disk, group, [write_part(log.table, disk, "", table)])


def compact_all(log: CommitLog, disk: Disk, now: float) -> list[str]:
    """Merge all parts: of each key one row is left. Names of the parts that went; raises as `compact_some`."""
    state = log.refresh()
    assert state.files is not None
    parts = list(state.files.values())
    if not parts or (all(part.base for part in parts) and len(parts) == 1):
        return []
    after = round((now - SAFE_AGE) * 1e6)
    made: list[Part] = []
    try:
        for low, high in _ranges(log.table, parts, state):
            table = _range(log.table, parts, state, low, high)
            table = there(newest_of_each(table, state.primary_key), after)
            if table.num_rows:
                made.append(write_part(log.table, disk, "", table, base=True))
    except BaseException:
        with contextlib.suppress(SinkError):
            remove_parts(log.table, [part.path for part in made], disk)
        raise
    return replace_parts(log, disk, parts, made)


def _ranges(table: str, parts: Sequence[Part], state: TableState) -> list[tuple[Any, Any]]:
    """Ranges of the key's first column that hold about `TARGET_ROWS` each: from, and up to; None: no limit."""
    import pyarrow as pa
    import pyarrow.compute as pc

    pieces = -(-sum(part.rows for part in parts) // TARGET_ROWS)
    if pieces < 2:
        return [(None, None)]
    first = state.primary_key[0]
    # of each part every so many rows, in all a few thousand for each range
    step = max(1, TARGET_ROWS // 4096)
    seen = []
    for part in parts:
        column = read_parts(table, [part], state.schema, [first])[first]
        seen += [chunk[::step] if len(chunk) >= step else chunk[:1] for chunk in column.chunks]
    sample = pa.chunked_array(seen)
    if pa.types.is_floating(sample.type):
        sample = sample.filter(pc.invert(pc.is_nan(sample)))  # none is less than it, and none greater
    if not len(sample):
        return [(None, None)]
    ordered = sample.take(pc.sort_indices(sample))
    cuts = [ordered[len(ordered) * piece // pieces] for piece in range(1, pieces)]
    cuts = [cut for place, cut in enumerate(cuts) if place == 0 or cut != cuts[place - 1]]
    return list(zip([None, *cuts], [*cuts, None]))


def _range(table: str, parts: Sequence[Part], state: TableState, low: Any, high: Any) -> pa.Table:
    """The rows of parts within one range; memory holds these and one part."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if low is None and high is None:
        return read_parts(table, parts, state.schema)
    first = state.primary_key[0]
    found = []
    for part in parts:
        rows = read_parts(table, [part], state.schema)
        if low is not None:
            rows = rows.filter(pc.invert(pc.less(rows[first], low)))  # a key that is NaN is in the last range
        if high is not None:
            rows = rows.filter(pc.less(rows[first], high))
        found.append(rows)
    return pa.concat_tables(found)


def replace_parts(log: CommitLog, disk: Disk, old: Sequence[Part], new: Sequence[Part]) -> list[str]:
    """Show the parts `new` in place of `old`, all of which must be visible still; return the names of those that went.

    SinkError; Conflict: another was faster. Then `new` is removed, unless it can have become visible.
    """
    names = [part.path for part in old]
    try:
        for name in names:
            # vacuum goes by the age of a file: that of its removal counts, for the sake of those who still read it
            with explained("touching", os.path.join(log.table, name)):
                disk.touch(os.path.join(log.table, name))
        log.append(Entry("compact", utc(time.time()), add=tuple(new), remove=tuple(names)))
    except (SinkError, OSError):
        with contextlib.suppress(SinkError):
            # an entry may stand in the log although its writer got an error, from a disk that would not sync
            shown = log.refresh().files or {}
            remove_parts(log.table, [part.path for part in new if part.path not in shown], disk)
        raise
    return names


class Compactor:
    """Compacts a table beside the process that writes it, in a thread: `look` after commits, `stop` at the end."""

    def __init__(self, table: str, disk: Disk | None = None, now: Callable[[], float] = time.time) -> None:
        self._table = table
        self._disk: Disk = disk or LocalDisk()
        self._now = now
        self._log: CommitLog | None = None
        self._thread: threading.Thread | None = None
        self._looked_at = 0
        #: when parts went, and their names
        self._gone: list[tuple[float, list[str]]] = []

    def look(self, version: int, parts: int) -> None:
        """Begin a compaction if enough came since the last time and none is on."""
        if version // _LOOK_EVERY == self._looked_at // _LOOK_EVERY or parts < 2:
            return
        self._looked_at = version
        if self._thread is not None and self._thread.is_alive():
            return
        self._thread = threading.Thread(target=self._work, name="compaction", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Wait for the one that is on."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()

    def _work(self) -> None:
        try:
            self.once()
        except Conflict:
            pass  # another process has been at it
        except Exception as error:  # of a file that this process may not read, a full disk: the next one may
            _logger.warning("table %s is not compacted: %s", self._table, error)

    def once(self) -> None:
        """Compact what is to be compacted, unless another process does. Raises as `compact_some`."""
        with alone(self._table) as nobody_else:
            if not nobody_else:
                return
            if self._log is None:
                self._log = CommitLog(self._table, self._disk)
            while names := compact_some(self._log, self._disk, self._now()):
                self._gone.append((self._now(), names))
            while self._gone and self._gone[0][0] <= self._now() - KEEP:
                remove_parts(self._table, self._gone.pop(0)[1], self._disk)


@contextlib.contextmanager
def alone(table: str, wait: bool = False) -> Iterator[bool]:
    """Tell whether no other process compacts the table, or wait until none does; none does until the block is left."""
    descriptor = os.open(os.path.join(table, LOG_FOLDER, "compaction"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)
