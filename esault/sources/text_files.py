"""Lines of text files."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar
from urllib.parse import quote

from esault.errors import SourceError, TopologyError
from esault.sources.file_list import deal, part_of
from esault.sources.file_sequence import FileSequence
from esault.sources.file_tail import FileTail
from esault.sources.line_tally import LineTally
from esault.sources.small_files import SMALL
from esault.sources.text_input import TextInput
from esault.topology.columns import Columns
from esault.topology.context import Context
from esault.topology.spout import EndOfStream, Spout

__all__ = ["TextFiles"]


class TextFiles(Spout[str, str]):
    """The lines of text files. Key: the file's name as found; value: the line without its newline.

    `path` is a file, a folder (of which `pattern` is read), a glob, or a list of them; relative names mean the
    working directory. `.gz` files are unpacked on the way. The list of files is made once and read in order of
    the names; a position is a file and a byte offset, so that after a restart the very same tuples come again.

    `path` may also name objects, such as "s3://bucket/prefix": see docs/how-to/object-stores.md. `storage_options` go to the store's client.

    `errors`, for bytes that are no text in `encoding` and for NUL bytes: "strict" stops with file and line,
    "replace" puts U+FFFD in their place, "ignore" leaves them out, "skip" leaves out the line. A line of more than
    `max_line` bytes is treated as `on_long_line` says: "fail", "skip" or "truncate". `counters()` says how often.

    `follow=True` never ends: it waits for lines added to the files, and for new files. Only lines that a newline
    ends come out. A file that was rotated (renamed, or copied and cut short; perhaps compressed then) is found by its inode
    and by how it begins, read to its end, and then the new one from its start. One reader follows a file; with several,
    names under which logs are put away should not fit `path`: another reader would read them as new files.

    With `parallelism=n` the files are divided by size among n readers (when following: by name). If files are
    added, removed or renamed between a run and its resumption, the resumption is refused where it would lose or
    repeat tuples.
    """

    delivery_guarantee: ClassVar[str] = "each line counts once: it is read again from the checkpoint"
    parallel: ClassVar[bool] = True
    keyed_by_piece = True

    def __init__(
        self,
        path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        *,
        encoding: str = "utf-8",
        errors: str = "strict",
        follow: bool = False,
        pattern: str = "**/*",
        max_line: int = 64 * 1024 * 1024,
        on_long_line: str = "fail",
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        self._input = TextInput("TextFiles", path, pattern, encoding, errors, max_line, on_long_line, storage_options)
        if follow and self._input.files.has_objects:
            raise TopologyError(
                "TextFiles: follow=True: objects of a store do not grow; take Directory(path), which reads those that are added"
            )
        self.follow = follow
        self.ordered = not follow
        self.moving_start = follow
        #: of the last read
        self._count = 0
        self._reader: FileSequence | FileTail | None = None
        self._failed: SourceError | None = None
        #: sizes of the files that `check` has found, for the next `open` of this object, also in a process forked since
        self._found: dict[str, int] | None = None

    @property
    def tally(self) -> LineTally:
        """Return the count of lines that were left out or cut short."""
        return self._input.tally

    def check(self) -> None:
        """Raises SourceError where a file is missing or cannot be read, a glob or a folder is empty."""
        sizes = self._input.files.measure(growing=self.follow)
        self._found = None if self.follow or self._input.files.has_objects else sizes

    def pieces(self) -> list[int] | None:
        """Return the sizes of the files as `check` has found them; None when following."""
        return None if self._found is None else list(self._found.values())

    def open(self, context: Context) -> None:
        """Find the files of this part."""
        self.context = context
        self.tally.logger = context.logger
        self._failed = None
        part, parts = context.part, context.parts
        if self.follow:
            if not self._input.files.find():  # `check` may have seen the folder on another host
                self._input.files.measure(growing=True)
            self._reader = FileTail(self._followed, self._input.form, self.tally, context.now)
        else:
            sizes = self._sizes(context)
            form = None if self._input.files.has_objects else self._input.form
            self._reader = FileSequence(deal(sizes, parts)[part], sizes, self._input.open, form)

    def read(self, limit: int) -> list[tuple[str, str]]:
        """Up to `limit` lines, of several files where they are small: each batch costs the same, however few lines it has."""
        return list(zip(*self._take(limit)))

    def read_columns(self, limit: int) -> Columns:
        """Return what `read` does, for which no pairs are made."""
        return Columns(*self._take(limit))

    def _take(self, limit: int) -> tuple[list[str], list[str]]:
        """Names and lines."""
        names, lines, size = self._some(limit)
        while lines and len(lines) < limit and size < SMALL:
            try:
                more_names, more, more_size = self._some(limit - len(lines))
            except EndOfStream:
                break
            except SourceError as error:  # what was read before it is good, and goes first
                self._failed = error
                break
            names += more_names
            lines += more
            size += more_size
        return names, lines

    def _some(self, limit: int) -> tuple[list[str], list[str], int]:
        """Names and lines of files that are read together, or of one, and how many bytes these have."""
        reader, together = self._reader, self.take_together(limit)
        if isinstance(reader, FileSequence) and together is not None:
            return (*together, reader.size)
        lines = self.take_of_one(limit)
        names = [self.name] * len(lines) if lines else []
        return names, lines, reader.size if isinstance(reader, FileSequence) else SMALL

    def take_together(self, limit: int) -> tuple[list[str], list[str]] | None:
        """Names and lines of small files, up to so many; None where `take_of_one` is to read the next ones."""
        reader = self._reader
        return reader.take_small(limit) if isinstance(reader, FileSequence) and self._failed is None else None

    def one_by_one(self) -> None:
        """The lines of the last `take_together` will come again, from `take_of_one`: one of them must be looked at by itself."""
        reader = self._reader
        assert isinstance(reader, FileSequence)
        reader.one_by_one()

    def take_of_one(self, limit: int) -> list[str]:
        """Up to `limit` lines, all of one file, which is `name`; fewer where a chunk of the file ends."""
        if self._failed is not None:
            raise self._failed
        lines = self._opened.take(limit)
        self._count = len(lines)
        return lines

    @property
    def name(self) -> str:
        """Return the name of the file that was read last, as it is the key of its lines."""
        return self._opened.last.name

    def unread(self, count: int) -> None:
        """The last `count` lines of the last `take_of_one` will come again."""
        self._opened.last.unread(count)

    def end_of(self, back: int) -> int:
        """The byte behind the last line of the last `take_of_one` (1), the one before it (2), and so on, in its file."""
        return self._opened.last.end_of(back)

    def line_number(self, end: int) -> int:
        """Return the number, from 1, of the line that ends at byte `end` of the file that was read last."""
        return self._opened.last.line_number(end)

    def row_ids(self) -> list[str] | None:
        """Return which file each row of the last read is of, and where it ends there; None where files come in order."""
        return self.ids_of_one(self._count)

    def ids_of_one(self, count: int) -> list[str] | None:
        """Return the same of the last `count` lines that were taken of one file."""
        return self._reader.row_ids(count) if isinstance(self._reader, FileTail) else None

    def caught_up(self) -> bool:
        """Return whether what the files held at first has been read, with `follow`."""
        return isinstance(self._reader, FileTail) and self._reader.caught_up

    def position(self) -> Any:
        """Plain values; see FileSequence and, with `follow`, FileTail."""
        return self._opened.position()

    def seek(self, position: Any) -> None:
        """Go on there; SourceError if the files have changed such that tuples would be lost or repeated."""
        self._failed = None
        self._opened.seek(position)

    def progress(self) -> tuple[float, float] | None:
        """Bytes read and bytes in all, as the files lie on the disk; None when following."""
        return self._reader.progress() if isinstance(self._reader, FileSequence) else None

    def counters(self) -> dict[str, int]:
        """Return the number of lines left out or cut short so far, by reason."""
        return dict(self.tally.counts)

    def close(self) -> None:
        """Close what is open."""
        if self._reader is not None:
            self._reader.close()

    @property
    def _opened(self) -> FileSequence | FileTail:
        if self._reader is None:
            raise SourceError("TextFiles: read before open(context)")
        return self._reader

    def _followed(self) -> list[str]:
        part, parts = self.context.part, self.context.parts
        return [name for name in self._input.files.find() if part_of(name, parts) == part]

    def _sizes(self, context: Context) -> dict[str, int]:
        """Sizes of all files, such that all readers of this run see the same ones even while the files change."""
        if context.parts == 1 or context.run_dir is None:
            found, self._found = self._found, None
            return self._input.files.measure(wait=True) if found is None else found
        folder = os.path.join(context.run_dir, "sources")
        shared = os.path.join(folder, quote(context.unit, safe="") + ".json")
        if not os.path.exists(shared):
            os.makedirs(folder, exist_ok=True)
            handle, draft = tempfile.mkstemp(dir=folder)
            with os.fdopen(handle, "w") as file:
                json.dump(self._input.files.measure(wait=True), file)
            try:
                os.link(draft, shared)  # fails if another reader was first: then its list holds
            except FileExistsError:
                pass
            finally:
                os.unlink(draft)
        with open(shared) as file:
            sizes: dict[str, int] = json.load(file)
        return sizes
