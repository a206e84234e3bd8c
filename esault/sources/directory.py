"""Lines of the files of a folder that gets files: each file is a split."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from esault.sources.file_list import FILES_AT_ONCE
from esault.sources.line_file import LineFile
from esault.sources.text_input import TextInput
from esault.topology.arguments import check_seconds
from esault.topology.context import Context
from esault.topology.split_source import SplitReader, SplitSource
from esault.topology.spout import EndOfStream

__all__ = ["Directory"]

#: chunks that one read looks for a line in
_CHUNKS_PER_READ = 4


class Directory(SplitSource[str, str]):
    """The lines of the files of a folder, those that come while it is read as well. Key: the file's name as found; value: a line.

    `path` is a folder (of which `pattern` is read), a file, a glob, or a list of them; relative names mean the working directory.
    Every `every` seconds it is looked for new files, and the stream never ends; `every=None`: only those are read that are there at the
    start. Each file is a split: the sub-units of the spout share the files, whichever has time takes the next, and their number may
    change while they read. Lines of one file stay in order.

    A file has to be whole when its name appears: write it under a name that does not fit, such as one that begins with a dot, or beside
    the folder, and rename it. What is added to it once it has been read to its end is not seen (`TextFiles(follow=True)` sees it).
    A file may be taken away once its rows are in a complete checkpoint, and a new one of its name then be read.

    `path` may also name objects, such as "s3://bucket/prefix": see docs/how-to/object-stores.md. `storage_options` go to the store's client.

    `.gz` files are unpacked on the way. `encoding`, `errors`, `max_line` and `on_long_line` are those of `TextFiles`.
    """

    bounded: ClassVar[bool] = True
    delivery_guarantee: ClassVar[str] = "each line counts once: it is read again from the checkpoint"

    def __init__(
        self,
        path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        *,
        every: float | None = 1.0,
        pattern: str = "**/*",
        encoding: str = "utf-8",
        errors: str = "strict",
        max_line: int = 64 * 1024 * 1024,
        on_long_line: str = "fail",
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        self._input = TextInput("Directory", path, pattern, encoding, errors, max_line, on_long_line, storage_options)
        self.discovery_interval = None if every is None else check_seconds("Directory", "every", every)
        self.splits_at_once = FILES_AT_ONCE

    def check(self) -> None:
        """Raises SourceError where a folder is missing; with `every=None` also where there is no file, or one cannot be read."""
        self._input.files.measure(growing=self.discovery_interval is not None, whole=True)
        self.splits_at_once = self._input.files.at_once

    def pieces(self) -> list[int] | None:
        """Return the sizes of the files as `check` has found them; None where it is looked for new ones."""
        return self._input.files.sizes

    def open(self, context: Context) -> None:
        """Open nothing: files are opened one by one."""
        self._input.tally.logger = context.logger

    def splits(self) -> Sequence[str] | None:
        """Return the names of all files, sorted."""
        found = self._input.files.splits()
        return None if found is None else list(found)

    def open_split(self, id: str, position: int | None) -> SplitReader[str, str]:
        """Return a reader of this file from a byte of its (unpacked) content on. Raises SourceError."""
        return _FileReader(self._input.open(id, position or 0))

    def counters(self) -> dict[str, int]:
        """Return the number of lines left out or cut short so far, by reason."""
        return dict(self._input.tally.counts)


class _FileReader(SplitReader[str, str]):
    def __init__(self, file: LineFile) -> None:
        self._file = file
        self._finished = False

    def read(self, limit: int) -> list[tuple[str, str]]:
        for _ in range(_CHUNKS_PER_READ):
            rows = self._file.read(limit)
            if rows or limit < 1:
                return rows
            if self._finished:
                self._file.close()
                raise EndOfStream
            if not self._file.fill():
                self._file.finish()
                self._finished = True
            elif self._file.waits:
                break
        return []

    def position(self) -> int:
        return self._file.offset

    def close(self) -> None:
        self._file.close()
