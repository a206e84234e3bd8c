"""One open file, read as blocks of lines from any byte on; `.gz` is unpacked on the way."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Mapping
from itertools import repeat
from typing import Any

from esault.errors import SourceError
from esault.object_store.object_file import ObjectFile
from esault.object_store.stored_object import is_url, without_version
from esault.sources.file_list import unreadable
from esault.sources.line_cutter import Block, LineCutter
from esault.sources.line_format import LineFormat
from esault.sources.line_tally import LineTally
from esault.sources.object_list import open_object

__all__ = ["LineFile"]

#: bytes read at once; a block of 256 kB is cut faster than one of 1 MB, which the processor's cache does not hold
CHUNK = 256 * 1024
#: ... where lines are long: a batch is of one chunk, and costs the same however few lines it has
LONG_CHUNK = 512 * 1024


class _PlainFile:
    """An open file on the disk, of which the system is asked less than by `io.FileIO`."""

    __slots__ = ("_number",)

    def __init__(self, path: str) -> None:
        self._number = -1
        self._number = os.open(path, os.O_RDONLY)

    def read(self, size: int) -> bytes:
        return os.read(self._number, size)

    def tell(self) -> int:
        return os.lseek(self._number, 0, os.SEEK_CUR)

    def seek(self, offset: int) -> None:
        os.lseek(self._number, offset, os.SEEK_SET)

    def fileno(self) -> int:
        return self._number

    @property
    def closed(self) -> bool:
        return self._number < 0

    def close(self) -> None:
        number, self._number = self._number, -1
        if number >= 0:
            os.close(number)

    __del__ = close


class LineFile:
    """A file from byte `offset` of its (unpacked) content on.

    Fill it, then take rows until none come; SourceError says what is wrong with the file, and in which line. `name` may be that of an
    object: it is fetched in the background, and what is wrong with it is said when it is filled.
    """

    def __init__(
        self,
        name: str,
        form: LineFormat,
        tally: LineTally,
        offset: int = 0,
        path: str | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        """`name` is the key of its rows; `path` is where it lies, if not there."""
        self._given, self._options = name, storage_options
        stored = is_url(name)
        self.name = without_version(name) if stored else name
        self.path = path or self.name
        self.zipped = self.path.endswith(".gz")
        self._cutter = LineCutter(form, tally, self.name, offset)
        self._block = Block([], offset)
        self._taken = 0
        self._raw: io.FileIO | _PlainFile | ObjectFile
        #: bytes of the unpacked content that are still to be passed over
        self._ahead = 0
        #: the last chunk was not a whole one
        self._short = False
        #: nothing came in the last fill, for it is not fetched yet
        self.waits = False
        if stored:
            self._raw = open_object(name, storage_options)
        else:
            try:
                self._raw = io.FileIO(self.path) if self.zipped else _PlainFile(self.path)
            except OSError as error:
                raise unreadable(self.path, error) from error
        self._file: io.RawIOBase | _PlainFile | gzip.GzipFile = self._raw
        try:
            if self.zipped:
                assert not isinstance(self._raw, _PlainFile)
                self._file = gzip.GzipFile(fileobj=self._raw)
            if offset:
                self._skip_to(offset)
        except BaseException:
            self.close()
            raise

    def fileno(self) -> int:
        """Return the descriptor of the file as it lies on the disk."""
        return self._raw.fileno()

    @property
    def offset(self) -> int:
        """Offset behind the last row taken."""
        return self._block.end(self._taken)

    @property
    def drained(self) -> bool:
        """Return whether all rows of what was filled in have been taken, and no bad line stands behind them."""
        return self._taken == len(self._block.lines) and self._block.bad is None

    @property
    def raw_offset(self) -> int:
        """Return the number of bytes of the file, as it lies on the disk, that have been read."""
        return self._raw.tell()

    @property
    def consumed(self) -> int:
        """Return the number of bytes, as they lie on the disk, that have been read and taken; of a `.gz`: read."""
        return self._raw.tell() if self.zipped else self.offset

    def read(self, limit: int) -> list[tuple[str, str]]:
        """Up to `limit` rows of what was filled in; none: fill again."""
        return list(zip(repeat(self.name), self.take(limit)))

    def take(self, limit: int) -> list[str]:
        """Take the lines of these rows, each of which has `name` for its key."""
        lines = self._block.lines[self._taken : self._taken + limit]
        self._taken += len(lines)
        if not lines and self._block.bad:
            bad = self._block.bad
            raise SourceError(f"{self.path}, line {self.line_number(bad.end)}: {bad.reason}")
        return lines

    def unread(self, count: int) -> None:
        """The last `count` rows taken since the last fill will come again."""
        self._taken -= count

    def end_of(self, back: int) -> int:
        """Offset behind the row that was taken last (1), the one before it (2), and so on, since the last fill."""
        return self._block.end(self._taken - back + 1)

    def ends(self, count: int) -> list[int]:
        """Offsets behind each of the last `count` rows that were taken."""
        return [self._block.end(i) for i in range(self._taken - count + 1, self._taken + 1)]

    def fill(self) -> bool:
        """Read one more chunk, which may complete no line; False at the end of what is there now. `waits` says that it was not here yet."""
        if isinstance(self._raw, ObjectFile):
            # What is packed may be longer than its content, by very little.
            self.waits = not self._raw.ready(2 * CHUNK if self.zipped else CHUNK)
            if self.waits:
                return True
            if self._ahead:
                self._ahead -= len(self._read(min(self._ahead, CHUNK))) or self._fail_short(self._ahead)
                return True
        size = LONG_CHUNK if self._cutter.long and type(self._raw) is _PlainFile else CHUNK
        data = self._read(size)
        if data:
            self._block, self._taken = self._cutter.feed(data), 0
            self._short = len(data) < size
        return bool(data)

    def over(self, size: int) -> bool:
        """Return whether all is read of a file that had so many bytes on the disk: the last chunk was short, and ended there or behind.

        One that says 0 may be of /proc, which gives what it has in short chunks.
        """
        return self._short and size > 0 and type(self._raw) is _PlainFile and self._cutter.fed >= size

    def finish(self) -> bool:
        """Nothing will be added any more: what stands behind the last newline is a line, too; False if nothing does."""
        pending = self._cutter.pending > 0
        if pending:
            self._block, self._taken = self._cutter.finish(), 0
        return pending

    def line_number(self, end: int) -> int:
        """Return the number, from 1, of the line that ends at byte `end`: counted anew, since lines are not counted while all is well."""
        file = LineFile(self._given, LineFormat(), LineTally(), 0, self.path, self._options)
        try:
            return 1 + file.count_newlines(end - 1)
        finally:
            file.close()

    def count_newlines(self, limit: int) -> int:
        """Return the number of lines that end within the next `limit` bytes."""
        count = 0
        while limit > 0 and (data := self._read(min(limit, CHUNK))):
            count += data.count(b"\n")
            limit -= len(data)
        return count

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        self._raw.close()

    def _skip_to(self, offset: int) -> None:
        if self.zipped and isinstance(self._raw, ObjectFile):
            self._ahead = offset
            return
        if self.zipped:
            left = offset
            while left and (data := self._read(min(left, CHUNK))):
                left -= len(data)
        else:
            raw = self._raw
            left = max(0, offset - (raw.size if isinstance(raw, ObjectFile) else os.fstat(raw.fileno()).st_size))
            raw.seek(offset)
        if left:
            self._fail_short(offset)

    def _fail_short(self, offset: int) -> int:
        raise SourceError(
            f"{self.path}: is shorter than what an earlier run has read of it (up to byte {offset}); "
            "put the old content back, or start anew (--restart)"
        )

    def _read(self, size: int) -> bytes:
        try:
            return self._file.read(size) or b""
        except (gzip.BadGzipFile, zlib.error) as error:
            raise SourceError(
                f"{self.path}: is no readable gzip file ({error}); check it with gzip -t, or rename it if it is plain "
                "text"
            ) from error
        except EOFError as error:
            raise SourceError(
                f"{self.path}: the gzip file ends in the middle; copy it again, or wait until it is complete"
            ) from error
        except OSError as error:
            raise SourceError(f"{self.path}: reading failed: {error.strerror or error}") from error
