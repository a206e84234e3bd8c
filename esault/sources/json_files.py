"""Objects of JSON lines files."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

from esault.errors import SourceError, TopologyError
from esault.payload.json_lines import decode_each
from esault.sources.record_key import UnusableError, as_key, shown
from esault.sources.text_files import TextFiles
from esault.topology.context import Context
from esault.topology.spout import Spout

__all__ = ["JsonFiles"]

#: JSON can name half a character; a string that holds one is no text and cannot travel
_HALF = re.compile(r"\\u[dD][89a-fA-F]")

_decoder = json.JSONDecoder()
#: what json.loads calls, without its checks of the arguments
_decode = _decoder.decode
#: what that calls, without its look for blanks around the object
_scan: Callable[[str, int], tuple[Any, int]] = _decoder.scan_once  # type: ignore[attr-defined]

_OBJECTS, _KEYS = frozenset({dict}), frozenset({str, int})


class JsonFiles(Spout[Any, dict[str, Any]]):
    """The objects of JSON lines files, one per line. Value: the object as a dict; empty lines do not count.

    Key: the value of the field named `key`, or what the function `key` makes of the object, or, without it, the
    name of the file. It must be text, a whole number, true or false; lists of them become tuples.

    A line that is no JSON object, or has no usable key, stops the topology with file and line number, or is left
    out and counted with `on_bad_line="skip"`. The other arguments and all else are those of `TextFiles`.
    """

    delivery_guarantee: ClassVar[str] = "each line counts once: it is read again from the checkpoint"
    parallel: ClassVar[bool] = True

    def __init__(
        self,
        path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        key: str | Callable[[dict[str, Any]], Any] | None = None,
        *,
        on_bad_line: str = "fail",
        encoding: str = "utf-8",
        errors: str = "strict",
        follow: bool = False,
        pattern: str = "**/*",
        max_line: int = 64 * 1024 * 1024,
        on_long_line: str = "fail",
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        if on_bad_line not in ("fail", "skip"):
            raise TopologyError(f'JsonFiles: on_bad_line={on_bad_line!r}: write "fail" or "skip"')
        if key is not None and not isinstance(key, str) and not callable(key):
            raise TopologyError(f"JsonFiles: key={key!r}: write the name of a field, or a function of the object")
        try:
            self._lines = TextFiles(
                path,
                encoding=encoding,
                errors=errors,
                follow=follow,
                pattern=pattern,
                max_line=max_line,
                on_long_line=on_long_line,
                storage_options=storage_options,
            )
        except TopologyError as error:
            raise TopologyError(f"JsonFiles: {str(error).removeprefix('TextFiles: ')}") from None
        self.ordered = not follow
        self.moving_start = follow
        #: of the last read: lines that were taken, and those of them that make no row
        self._count = 0
        self._left_out: list[int] = []
        self._key = key
        self.keyed_by_piece = key is None
        self._skip = on_bad_line == "skip"

    def check(self) -> None:
        """Raises SourceError where a file is missing or cannot be read, a glob or a folder is empty."""
        self._lines.check()

    def pieces(self) -> list[int] | None:
        """As `TextFiles`."""
        return self._lines.pieces()

    def open(self, context: Context) -> None:
        """Find the files of this part."""
        self.context = context
        self._lines.open(context)

    def read(self, limit: int) -> list[tuple[Any, dict[str, Any]]]:
        """Up to `limit` objects, of several files where they are small and nothing in them is odd."""
        together = None if callable(self._key) else self._lines.take_together(limit)
        if together is not None:
            self._left_out, self._count = [], 0
            at_once = self._at_once(*together) if together[1] else []
            if at_once is not None:
                return at_once
            self._lines.one_by_one()
        lines = self._lines.take_of_one(limit)
        self._left_out, self._count = [], len(lines)
        if not lines:
            return []
        name = self._lines.name
        at_once = self._at_once([name] * len(lines), lines)
        if at_once is not None:
            return at_once
        rows: list[tuple[Any, dict[str, Any]]] = []
        key = self._key
        for index, line in enumerate(lines):
            try:
                try:
                    value, end = _scan(line, 0)
                    whole = end == len(line)
                except StopIteration:
                    whole = False
                if not whole:
                    value = _decode(line)
                if type(value) is not dict or ("\\u" in line and _HALF.search(line)):
                    _check_value(value)
                if key is None:
                    found: Any = name
                else:
                    found = value[key] if isinstance(key, str) else key(value)
                    if type(found) is not str and type(found) is not int:
                        found = as_key(found)
                rows.append((found, value))
            except Exception as error:  # whatever the user's function raises about this object
                if not line.strip():
                    self._left_out.append(index)
                    continue
                back = len(lines) - index
                if self._skip:
                    self._left_out.append(index)
                    start = self._lines.end_of(back) - len(line.encode(errors="replace")) - 1
                    self._lines.tally.note("bad_lines_skipped", name, start, self._reason(line, error))
                    continue
                end = self._lines.end_of(back)
                self._lines.unread(back)
                self._count = index
                if not rows:
                    raise SourceError(
                        f"{name}, line {self._lines.line_number(end)}: {self._reason(line, error)}"
                    ) from error
                # what stands before the bad line is good: it goes first, and the position stays before the line
                break
        return rows

    def row_ids(self) -> list[str] | None:
        """As `TextFiles`."""
        ids = self._lines.ids_of_one(self._count)
        left_out = set(self._left_out)
        return ids if ids is None or not left_out else [each for i, each in enumerate(ids) if i not in left_out]

    def _at_once(self, names: list[str], lines: list[str]) -> list[tuple[Any, dict[str, Any]]] | None:
        """The rows of lines that are read as one text, whose objects share the names of their fields: they take less memory, and
        travel in less; None where each line must be looked at."""
        key = self._key
        if callable(key):
            return None
        values = decode_each(lines, halves=False)
        if values is None or not _OBJECTS.issuperset(map(type, values)):
            return None
        try:
            keys = names if key is None else [value[key] for value in values]
        except Exception:  # what it is, and in which line, is found line by line
            return None
        return list(zip(keys, values)) if _KEYS.issuperset(map(type, keys)) else None

    def caught_up(self) -> bool:
        """As `TextFiles`."""
        return self._lines.caught_up()

    def position(self) -> Any:
        """Plain values; see TextFiles."""
        return self._lines.position()

    def seek(self, position: Any) -> None:
        """Go on there; SourceError if the files have changed such that tuples would be lost or repeated."""
        self._lines.seek(position)

    def progress(self) -> tuple[float, float] | None:
        """Bytes read and bytes in all, as the files lie on the disk; None when following."""
        return self._lines.progress()

    def counters(self) -> dict[str, int]:
        """Return the number of lines left out or cut short so far, by reason."""
        return self._lines.counters()

    def close(self) -> None:
        """Close what is open."""
        self._lines.close()

    def _reason(self, line: str, error: Exception) -> str:
        remedy = "correct the line" + ("" if self._skip else ', or leave such lines out with on_bad_line="skip"')
        if isinstance(error, UnusableError):
            return f"{error}; {remedy}"
        if isinstance(error, json.JSONDecodeError):
            if line.startswith("\ufeff"):
                remedy = 'the line starts with a byte order mark: read the file with encoding="utf-8-sig"'
            return f"no JSON: {error.msg} at character {error.pos + 1} of {shown(line)}; {remedy}"
        if isinstance(error, KeyError) and isinstance(self._key, str):
            return f"the object has no field {self._key!r}, which key= asks for: {shown(line)}; {remedy}"
        if isinstance(error, RecursionError):
            return f"no usable JSON: nested too deeply; {remedy}"
        who = "the function key= or the JSON reader" if callable(self._key) else "the JSON reader"
        return f"{who} raised {type(error).__name__}: {error} for {shown(line)}; {remedy}"


def _check_value(value: Any) -> None:
    if not isinstance(value, dict):
        kind = {list: "a list", str: "a text", type(None): "null"}.get(type(value), "a number or a truth value")
        raise UnusableError(f"holds {kind} where an object {{...}} is needed")
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise UnusableError(r"names half a character (a lone \ud800 to \udfff), which is no text") from None
