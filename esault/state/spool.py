"""The rows that a spout that cannot seek has read, on disk, so that they can be read again.

```
UNIT-PART/rest                what an orderly stop left that makes no row yet: the place at which the spool ended, and a value of the spout
UNIT-PART/SSSSSSSS.rows       a segment: length(u32) crc32(u32) block, ...; a block is a packed list of (key, value) pairs, or a dict of columns
```

Where the source has positions, to be acknowledged by or to go on from, a block is a dict of one such block, the position behind it and the names of its
rows, if they have any; the first of a
segment may hold no rows, and the position before them.

A position is (segment, bytes before it in the segment). Rows are written before the engine gets them, so that, whichever process dies, none
that was emitted is missing. What the source itself had taken and not handed out when its process died is beyond reach; so is
whatever a source does when it is opened anew.

It is one module of over 300 lines: what is written, read again and left at a stop are one order of blocks.
"""

from __future__ import annotations

import contextlib
import os
import struct
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote
from zlib import crc32

from esault.errors import CheckpointError, FrameError, SourceError
from esault.payload.codec import Codec
from esault.payload.column import checked, plain
from esault.payload.column_wire import wired
from esault.payload.packed_rows import Rows
from esault.state.files import sync_file, sync_folder, write_whole
from esault.state.row_names import RowNames
from esault.topology.columns import Columns
from esault.topology.context import Context
from esault.topology.plan import UnitPlan
from esault.topology.spout import EndOfStream, Spout, SpoutAround, is_acknowledged

__all__ = ["SPOOL", "SpoolReader", "Spooled", "rename_spools", "spool_folder", "spooled"]

#: the folder of all spools in a state directory
SPOOL = "spool"

#: bytes after which a segment is followed by another
SEGMENT_BYTES = 64 << 20
#: rows that are asked for at once where a run stops
_ROWS = 1000
_REST = "rest"
_BLOCK = struct.Struct(">II")


def spooled(unit: UnitPlan, state_dir: Path, part: int) -> UnitPlan:
    """The unit with its spout's rows kept."""
    assert unit.spout is not None
    return replace(unit, spout=Spooled(unit.spout, spool_folder(state_dir, unit.name, part)))


def spool_folder(state_dir: Path, unit: str, part: int) -> Path:
    """Return the folder for what a part of a spout has read."""
    return state_dir / SPOOL / f"{quote(unit, safe='')}-{part}"


def rename_spools(state_dir: Path, units: Mapping[str, str]) -> None:
    """Move what was read for a spout to the name that it has now; old name -> new one."""
    for old, new in units.items():
        for folder in (state_dir / SPOOL).glob(f"{quote(old, safe='')}-*"):
            part = folder.name.rpartition("-")[2]
            if folder == spool_folder(state_dir, old, int(part)):
                folder.rename(spool_folder(state_dir, new, int(part)))


class Spooled(SpoutAround[Any, Any]):
    """Stands for a spout that has no positions, and has them."""

    parallel: ClassVar[bool] = True  # of the spout in it, which has been asked
    stands_for_another: ClassVar[bool] = True

    def __init__(self, spout: Spout[Any, Any], folder: Path) -> None:
        self.spout = spout
        self.reads_command = spout.reads_command
        self._folder = folder
        self._codec = Codec()
        self._opened = False
        self._ended = False
        #: an orderly stop has had all that the source had taken written down
        self._halted = False
        #: the segment that is written, closed with this object at the latest
        self._fd = -1
        self._closer: Any = None
        self._segment = 0
        self._size = 0
        #: rows of earlier reads that come again: where the next block stands; None: all have come
        self._again: tuple[int, int] | None = None
        #: behind the last row that was handed out
        self._place = (0, 0)
        self._committed: tuple[int, int] | None = None
        #: rows that the source has given and the disk has refused
        self._unwritten: Sequence[tuple[Any, Any]] | Columns | None = None
        #: the source is told what it may forget
        self._acknowledged = is_acknowledged(spout)
        #: names of rows that it may give once more
        self._names = RowNames() if self._acknowledged and type(spout).row_ids is not Spout.row_ids else None
        #: where it stood behind what was written last, where that is not yet durable, and what is durable and not acknowledged
        self._unsettled: tuple[tuple[int, int], Any] | None = None
        self._settled: deque[tuple[tuple[int, int], Any]] = deque()

    # the source ------------------------------------------------------------------------------------

    def check(self) -> None:
        self.spout.check()

    def open(self, context: Context) -> None:
        """The source stays open when all go back: it is the only one who knows what has not been read."""
        self.context = self.spout.context = context
        if not self._opened:
            try:
                self._folder.mkdir(0o700, parents=True, exist_ok=True)
            except OSError as error:
                raise self._failed(error) from error
            segments = self._segments()
            rest = self._rest(segments)
            kept = self._last_position(segments) if self._acknowledged else None
            if self._names is not None:
                self._learn(self._names, segments)
            self._start_segment(segments[-1] + 1 if segments else 0)
            if kept is not None:
                self._append(self._codec.pack({"position": kept[0], "rows": b""}))
            self.spout.open(context)
            if kept is not None:
                self.settle()
                if self.spout.seekable:
                    self.spout.seek(kept[0])
                else:
                    self.spout.commit(kept[0])
            if rest is not None:
                self.spout.begin_with(rest)
            self._opened = True
        # From the first row on, unless `seek` says otherwise: without a checkpoint all go back to the beginning.
        self._again = self._place = (self._segments()[0], 0)

    def caught_up(self) -> bool:
        return self._again is None and self.spout.caught_up()

    def read(self, limit: int) -> Sequence[tuple[Any, Any]] | Columns:
        if self._again is not None:
            # A block is one read, so that every position is between two of them: it comes whole, whatever the limit is now.
            rows = self._read_again()
            if rows:
                return rows
        if self._ended:
            raise EndOfStream
        if self._halted:
            return ()
        if self._unwritten is not None:
            rows = self._unwritten
        else:
            try:
                rows = self.spout.read(limit)
            except EndOfStream:
                self._ended = True
                raise
        if rows:
            rows = self._keep(rows)
            self._place = (self._segment, self._size)
        return rows

    def _keep(self, rows: Sequence[tuple[Any, Any]] | Columns) -> Sequence[tuple[Any, Any]] | Columns:
        """Write rows down, but those that stand here already, and return what was written.

        Where the disk refuses they are the next ones: the source gives them once. Raises CheckpointError.
        """
        given, names = rows, None if self._names is None else self.spout.row_ids()
        if self._names is not None and names is not None:
            if len(names) != len(rows):
                raise SourceError(
                    f"{type(self.spout).__name__}.row_ids must return one name for each of the {len(rows)} rows of the last read, "
                    f"got {len(names)}"
                )
            new = self._names.new(names)
            if len(new) < len(names):
                if isinstance(rows, Columns):
                    keys = [None] * len(rows) if rows.keys is None else plain(rows.keys)
                    rows = list(zip(keys, plain(rows.values)))
                rows = [rows[i] for i in new]
        try:
            if rows:
                self._write(self._checked(rows) if isinstance(rows, Columns) else list(rows), names)
            else:  # the source is told, when all that stands here already is durable
                self._unsettled = ((self._segment, self._size), self.spout.position())
        except CheckpointError:
            self._unwritten = given
            raise
        self._unwritten = None
        if self._names is not None and names is not None:
            self._names.note(names)
        return rows

    def _learn(self, names: RowNames, segments: Sequence[int]) -> None:
        """Read the names of rows that stand here."""
        for segment in segments:
            offset = 0
            while block := self._block(segment, offset):
                offset += _BLOCK.size + len(block)
                found = self._codec.unpack(block)
                if isinstance(found, dict) and found.get("names"):
                    names.learn(found["names"])

    def put_aside(self) -> None:
        """The run stops in order: write down what the source has taken from outside and not given yet. Raises CheckpointError."""
        if self._halted or self._ended or not self._opened or not self.spout.takes_ahead:
            return
        self._halted = True
        rest = self.spout.halt()
        place = self._place
        if self._unwritten is not None:
            self._keep(self._unwritten)
        while True:
            try:
                rows = self.spout.read(_ROWS)
            except EndOfStream:
                break
            if not rows:
                break
            self._keep(rows)
        if self._again is None and (self._segment, self._size) != place:
            self._again = place
        if rest is not None:
            try:
                write_whole(self._folder / _REST, self._codec.pack((self._segment, self._size, rest)))
            except OSError as error:
                raise self._failed(error) from error

    def _rest(self, segments: Sequence[int]) -> Any:
        """Return what the last run left that makes no row yet; None: nothing, or a later run has begun with it and read on."""
        try:
            segment, size, rest = self._codec.unpack((self._folder / _REST).read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._failed(error) from error
        behind = sum(self._path(number).stat().st_size for number in segments if number >= segment)
        return rest if behind == size else None

    def position(self) -> tuple[int, int]:
        return self._place

    def seek(self, position: Any) -> None:
        segment, offset = position
        self._again = (segment, offset)
        self._place = (segment, offset)

    def settle(self) -> None:
        """Make what has been read durable. Raises CheckpointError."""
        if self._fd < 0:
            return  # it was never opened: the source had ended before
        try:
            os.fsync(self._fd)
        except OSError as error:
            raise self._failed(error) from error
        if self._unsettled is not None:
            self._settled.append(self._unsettled)
            if self._names is not None:
                self._names.cut()
            self._unsettled = None

    def commit(self, position: Any) -> None:
        """The checkpoint before this one may still be needed; what was read before that may go."""
        place, known, passed = tuple(position), None, 0
        while self._settled and self._settled[0][0] <= place:
            known = self._settled.popleft()
            passed += 1
        if self._names is not None and passed:
            self._names.told(passed, self.context.now())
        if known is not None:
            self.spout.commit(known[1])
        before, self._committed = self._committed, position
        if before is not None:
            for segment in self._segments():
                if segment < before[0]:
                    with contextlib.suppress(OSError):
                        self._path(segment).unlink()

    def due(self) -> float | None:
        return None if self._again is not None else self.spout.due()

    def next_due(self) -> float | None:
        """As the spout."""
        return None if self._again is not None else self.spout.next_due()

    def close(self) -> None:
        try:
            self.spout.close()
        finally:
            self._close_segment()

    def _close_segment(self) -> None:
        if self._closer is not None:
            self._closer()
            self._fd, self._closer = -1, None

    # the disk --------------------------------------------------------------------------------------

    def _failed(self, error: OSError) -> CheckpointError:
        return CheckpointError(
            f"what the spout reads cannot be kept in {self._folder}: {error.strerror or error}; free space or mend permissions"
        )

    def _path(self, segment: int) -> Path:
        return self._folder / f"{segment:08d}.rows"

    def _segments(self) -> list[int]:
        return sorted(int(path.stem) for path in self._folder.glob("*.rows") if path.stem.isdigit())

    def _start_segment(self, number: int) -> None:
        try:
            if self._fd >= 0:
                os.fsync(self._fd)
            # Before the old one is closed: where this fails, what is left is still a file of ours.
            fd = os.open(self._path(number), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            if self._acknowledged:
                sync_folder(self._folder)
        except OSError as error:
            raise self._failed(error) from error
        self._close_segment()
        self._fd, self._closer = fd, weakref.finalize(self, os.close, fd)
        self._segment, self._size = number, 0

    @staticmethod
    def _checked(rows: Columns) -> dict[str, Any]:
        keys = None if rows.keys is None else wired(checked(rows.keys, "keys"))
        return {"keys": keys, "values": wired(checked(rows.values, "values"))}

    def _write(self, rows: list[tuple[Any, Any]] | dict[str, Any], names: Sequence[str] | None = None) -> None:
        block = self._codec.pack(Rows(rows) if isinstance(rows, list) else rows)
        position = None
        if self._acknowledged:
            position = self.spout.position()
            named = {} if names is None else {"names": list(names)}
            block = self._codec.pack({"position": position, "rows": block, **named})
        self._append(block)
        if self._acknowledged:
            self._unsettled = ((self._segment, self._size), position)

    def _append(self, block: bytes) -> None:
        data = _BLOCK.pack(len(block), crc32(block)) + block
        if self._size and self._size + len(data) > SEGMENT_BYTES:
            self._start_segment(self._segment + 1)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, self._size)
                os.lseek(self._fd, self._size, os.SEEK_SET)
            raise self._failed(error) from error
        self._size += len(data)

    def _read_again(self) -> Sequence[tuple[Any, Any]] | Columns:
        """The next block of the spool; nothing when all have come."""
        assert self._again is not None
        segment, offset = self._again
        while (segment, offset) < (self._segment, self._size):
            block = self._block(segment, offset)
            if block:
                offset += _BLOCK.size + len(block)
                self._again = self._place = (segment, offset)
                try:
                    rows = self._codec.unpack(block)
                    if isinstance(rows, dict) and "position" in rows:
                        if not rows["rows"]:
                            continue
                        rows = self._codec.unpack(rows["rows"])
                    return Columns(rows["keys"], rows["values"]) if isinstance(rows, dict) else list(rows)
                except FrameError as error:
                    raise CheckpointError(
                        f"{self._path(segment)} is damaged before byte {offset:,}: {error}"
                    ) from error
            later = [number for number in self._segments() if number > segment]
            if not later:
                break
            segment, offset = later[0], 0
        self._again = None
        self._place = (self._segment, self._size)
        return ()

    def _last_position(self, segments: Sequence[int]) -> tuple[Any] | None:
        """Return where the source stood behind the last row that is here, which is durable then. Raises CheckpointError."""
        last: tuple[Any] | None = None
        for segment in reversed(segments):
            offset, found = 0, None
            while block := self._block(segment, offset):
                offset += _BLOCK.size + len(block)
                found = block
            if found is not None:
                said = self._codec.unpack(found)
                last = (said["position"],) if isinstance(said, dict) and "position" in said else None
                break
        if last is not None:
            try:
                for segment in segments:
                    sync_file(self._path(segment))
            except OSError as error:
                raise self._failed(error) from error
        return last

    def _block(self, segment: int, offset: int) -> bytes:
        """The block there; b"" at the end, or where a process was killed while it wrote."""
        path = self._path(segment)
        try:
            with path.open("rb") as source:
                source.seek(offset)
                head = source.read(_BLOCK.size)
                if len(head) < _BLOCK.size:
                    return b""
                length, checksum = _BLOCK.unpack(head)
                block = source.read(length)
        except FileNotFoundError:
            raise CheckpointError(
                f"{path} is missing: what the spout had read is gone; begin anew with --restart"
            ) from None
        except OSError as error:
            raise CheckpointError(f"{path} cannot be read: {error.strerror or error}") from error
        if len(block) < length:
            return b""
        if crc32(block) != checksum:
            raise CheckpointError(f"{path} is damaged behind byte {offset:,}: its checksum is another one")
        return block


class SpoolReader(Spooled):
    """Reads what another process keeps in a spool, from a position on; for as many rows as that one says there are."""

    def __init__(self, folder: Path) -> None:
        super().__init__(Spout(), folder)

    def open(self, context: Context) -> None:
        self.context = context
        self._seek_first()

    def _seek_first(self) -> None:
        segments = self._segments()
        self._place = (segments[0] if segments else 0, 0)

    def read(self, limit: int) -> Sequence[tuple[Any, Any]] | Columns:
        """The next block, whole; nothing when none has been written behind the last one."""
        place, self._again = self._place, self._place
        # The end is where the other one writes: as far as there are whole blocks.
        self._segment, self._size = max([*self._segments(), place[0]]) + 1, 0
        rows = self._read_again()
        if not rows:
            self._place = place
        return rows

    def seek(self, position: Any) -> None:
        segment, offset = position
        self._place = (segment, offset)

    def close(self) -> None:
        """Nothing is open."""
