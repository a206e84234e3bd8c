"""Rows of CSV files: each file is a split."""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from esault.errors import SourceError, TopologyError
from esault.object_store.stored_object import without_version
from esault.sources.csv_format import CsvFormat
from esault.sources.file_list import FILES_AT_ONCE
from esault.sources.record_key import UnusableError, as_key, described, shown
from esault.sources.text_input import TextInput
from esault.topology.arguments import check_seconds
from esault.topology.columns import Columns
from esault.topology.context import Context
from esault.topology.split_source import SplitReader, SplitSource
from esault.topology.spout import EndOfStream

__all__ = ["CsvFiles"]

#: chunks that one read looks for a row in
_CHUNKS_PER_READ = 4
_KEYS = frozenset({str, int})


class CsvFiles(SplitSource[Any, dict[str, Any]]):
    """The rows of CSV files, each a dict by the names of the fields. Key: the field named `key`, or what the function `key` makes of
    the row; without it the name of the file.

    `path` is a file, a folder (of which `pattern` is read), a glob, or a list of them; `.gz` files are unpacked on the way. Each file
    is a split: the sub-units of the spout share the files, and their number may change while they read. Rows of a file stay in order.
    `every`: seconds between two looks for new files, which have to be whole when their names appear; None: those that are there at the
    start, and then the run ends.

    `path` may also name objects, such as "s3://bucket/prefix": see docs/how-to/object-stores.md. `storage_options` go to the store's client.

    `header=True`: the first line of each file names its fields; else a list of names, for files without such a line. Fields are text,
    but those in `types`: `{"amount": float, "at": datetime}`, each a type or a function of the text; an empty field of these is None.
    A field in quotes may hold delimiters and line breaks, which come as `\\n`. Empty lines do not count.

    A line that is no CSV, has too few or too many fields, or one that is not of its type, stops the run with file and line number,
    or is left out and counted with `on_bad_line="skip"`. `encoding`, `errors`, `max_line` (also of a row) and `on_long_line` are
    those of `TextFiles`; a byte order mark is left out.
    """

    bounded: ClassVar[bool] = True
    delivery_guarantee: ClassVar[str] = "exactly once: a place in each file is kept in checkpoints"

    def __init__(
        self,
        path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        key: str | Callable[[dict[str, Any]], Any] | None = None,
        *,
        header: bool | Sequence[str] = True,
        delimiter: str = ",",
        quotechar: str | None = '"',
        types: dict[str, Callable[[str], Any]] | None = None,
        on_bad_line: str = "fail",
        every: float | None = None,
        pattern: str = "**/*",
        encoding: str = "utf-8",
        errors: str = "strict",
        max_line: int = 64 * 1024 * 1024,
        on_long_line: str = "fail",
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        if on_bad_line not in ("fail", "skip"):
            raise TopologyError(f'CsvFiles: on_bad_line={on_bad_line!r}: write "fail" or "skip"')
        encoding = "utf-8-sig" if isinstance(encoding, str) and encoding.lower() in ("utf-8", "utf8") else encoding
        self._input = TextInput("CsvFiles", path, pattern, encoding, errors, max_line, on_long_line, storage_options)
        try:
            self._form = CsvFormat(header, delimiter, quotechar, types, key)
        except TopologyError as error:
            raise TopologyError(f"CsvFiles: {error}") from None
        self._skips = on_bad_line == "skip"
        self.discovery_interval = None if every is None else check_seconds("CsvFiles", "every", every)
        self.splits_at_once = FILES_AT_ONCE

    def check(self) -> None:
        """Raises SourceError where a file is missing or cannot be read; with `every` only where a folder is missing."""
        self._input.files.measure(growing=self.discovery_interval is not None, whole=True)
        self.splits_at_once = self._input.files.at_once

    def pieces(self) -> list[int] | None:
        """Return the sizes of the files as `check` has found them; None where it is looked for new ones."""
        return self._input.files.sizes

    def open(self, context: Context) -> None:
        """Open nothing: files are opened one by one."""
        self._input.tally.logger = context.logger
        # csv's own bound is for the whole process: a row has its bound in max_line
        csv.field_size_limit(sys.maxsize)

    def splits(self) -> Sequence[str] | None:
        """Return the names of all files, sorted."""
        found = self._input.files.splits()
        return None if found is None else list(found)

    def open_split(self, id: str, position: Any) -> SplitReader[Any, dict[str, Any]]:
        """Return a reader of this file from (byte of its unpacked content, names of its fields) on. Raises SourceError."""
        return _CsvReader(id, position, self._form, self._input, self._skips)

    def counters(self) -> dict[str, int]:
        """Return the number of lines left out or cut short so far, by reason."""
        return dict(self._input.tally.counts)


class _CsvReader(SplitReader[Any, dict[str, Any]]):
    """Lines of the file are held until the record that they are of is whole: a field in quotes may go on over many."""

    def __init__(self, name: str, position: Any, form: CsvFormat, text: TextInput, skips: bool) -> None:
        self._name, self._form, self._input, self._skips = without_version(name), form, text, skips
        #: where the next record begins
        self._next: int
        self._next, names = position or (0, form.names)
        self._file = text.open(name, self._next)
        self._finished = self._ended = False
        #: lines that are held, the offsets behind them, whether there is a quote in one, and how many bytes are to be there before it
        #: is worth looking for a whole record again
        self._lines: list[str] = []
        self._ends: list[int] = []
        self._quoted = False
        self._enough = 0
        self._names: list[str] | None = None
        self._made: list[tuple[int, str, Callable[[str], Any]]] = []
        if names is not None:
            self._learn(list(names), 0)

    def read(self, limit: int) -> Columns | list[Any]:
        if limit < 1:
            return []
        for _ in range(_CHUNKS_PER_READ):
            if not self._lines or self._enough:
                self._take(limit)
                if self._file.waits:
                    break
                if not self._lines or not (self._ended or self._ends[-1] - self._next >= self._enough):
                    continue
            rows = self._at_once(limit) or self._one_by_one(limit)
            if rows is not None:
                return rows
        return []

    def position(self) -> tuple[int, list[str] | None]:
        return self._next, self._names

    def close(self) -> None:
        self._file.close()

    def _take(self, limit: int) -> None:
        """Hold more lines. Raises EndOfStream where there are none, and none are held."""
        rows = self._file.read(max(limit, 1000) if self._lines else limit)
        if rows:
            lines = [line for _, line in rows]
            self._lines += lines
            self._ends += self._file.ends(len(rows))
            quote = self._form.quotechar
            self._quoted = self._quoted or (quote is not None and any(quote in line for line in lines))
        elif self._finished:
            self._ended = True
            if not self._lines:
                self._file.close()
                raise EndOfStream
        elif not self._file.fill():
            self._file.finish()
            self._finished = True

    def _drop(self, count: int) -> None:
        """The first `count` lines that are held have been dealt with."""
        if count:
            self._next = self._ends[count - 1]
            del self._lines[:count], self._ends[:count]
            self._enough = 0
            self._quoted = self._quoted and bool(self._lines)

    def _at_once(self, limit: int) -> Columns | None:
        """The rows of lines that are each a good record; None where each must be looked at."""
        names, key = self._names, self._form.key
        if names is None or callable(key):
            return None
        lines = self._lines[:limit]
        try:
            records: list[list[Any]] = list(self._form.records(lines))
            if len(records) != len(lines) or set(map(len, records)) != {len(names)}:
                return None
            for place, _, made in self._made:
                for record in records:
                    text = record[place]
                    record[place] = made(text) if text else None
        except Exception:  # what it is, and in which line, is found record by record
            return None
        if key is None:
            keys: list[Any] = [self._name] * len(records)
        else:
            place = names.index(key)
            keys = [record[place] for record in records]
            if not _KEYS.issuperset(map(type, keys)):
                return None
        self._drop(len(lines))
        return Columns(keys, [dict(zip(names, record)) for record in records])

    def _one_by_one(self, limit: int) -> Columns | None:
        """The rows of the records that are whole, up to one that makes no row; None: there are none yet."""
        lines = self._lines
        keys: list[Any] = []
        values: list[dict[str, Any]] = []
        begin = at = 0
        records = self._records(begin)
        while at < len(lines) and len(values) < limit:
            end = at + 1
            try:
                record = next(records)
                end = begin + records.line_num
                if self._names is None and record:
                    self._learn(record, at)
                    at = end
                    break  # the rest at once
                if record:
                    key, value = self._row(record)
                    keys.append(key)
                    values.append(value)
            except SourceError:
                raise
            except Exception as error:  # csv's, or whatever a function of the user's raises about this record
                reason = described(error)
                if isinstance(error, csv.Error):
                    reason = f"{error} (is a quote before it not closed?)"
                    end = begin + records.line_num
                    if self._quoted and end >= len(lines) and "end of data" in str(error):
                        size = self._ends[-1] - (self._ends[at - 1] if at else self._next)
                        if not self._ended and size <= self._input.form.max_line:
                            self._drop(at)
                            self._enough = 2 * size
                            return Columns(keys, values) if values else None
                        reason = "a quote is opened and never closed"
                        # what follows its line may well be rows
                        begin = end = at + 1
                        records = self._records(begin)
                if not self._skips:
                    if values:
                        break  # what stands before the bad record is good, and goes first
                    raise self._failure(at, reason) from error
                start = self._ends[at - 1] if at else self._next
                self._input.tally.note("bad_lines_skipped", self._name, start, reason)
            at = end
        self._drop(at)
        return Columns(keys, values) if values else None

    def _records(self, begin: int) -> Any:
        return self._form.records(
            [f"{line}\n" for line in self._lines[begin:]] if self._quoted else self._lines[begin:]
        )

    def _row(self, record: list[Any]) -> tuple[Any, dict[str, Any]]:
        """Return key and value. Raises ValueError, and what functions of the user raise."""
        names, key = self._names, self._form.key
        assert names is not None
        if len(record) != len(names):
            raise UnusableError(f"has {len(record)} fields, and the header has {len(names)}")
        for place, kind, made in self._made:
            text = record[place]
            try:
                record[place] = made(text) if text else None
            except Exception as error:
                raise UnusableError(
                    f"field {names[place]!r} is {shown(text)!r}, which is no {kind} ({described(error)})"
                ) from error
        value = dict(zip(names, record))
        if key is None:
            return self._name, value
        return as_key(value[key] if isinstance(key, str) else key(value)), value

    def _learn(self, names: list[str], at: int) -> None:
        """These are the names of the fields."""
        try:
            self._made = self._form.places(names)
        except TopologyError as error:
            raise self._failure(at, str(error)) from None
        self._names = names

    def _failure(self, at: int, reason: str) -> SourceError:
        line = self._file.line_number(self._ends[at]) if self._ends else 1
        remedy = (
            "correct the line, or name another field in key= or types="
            if self._names is None
            else 'correct the line, or leave such lines out with on_bad_line="skip"'
        )
        return SourceError(f"{self._name}, line {line}: {reason}; {remedy}")
