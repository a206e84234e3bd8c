"""Dead letters on disk: JSON lines, one file for each sub-unit, durable before the tuple is acked."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import IO, Any

from esault.errors import SinkError
from esault.payload.json_text import strict_json
from esault.payload.portable import brief

__all__ = ["DeadLetterFile"]


class DeadLetterFile:
    """Appends records to `path`, with the incarnation before the ending: `dead.jsonl` -> `dead.7.jsonl`."""

    def __init__(self, path: str | None, incarnation: int) -> None:
        self._path = None if path is None else Path(path).with_suffix(f".{incarnation}{Path(path).suffix}")
        self._file: IO[str] | None = None

    def __str__(self) -> str:
        return str(self._path)

    def ids(self) -> set[str]:
        """Return the ids of the records that are there. Raises SinkError."""
        assert self._path is not None
        found = set()
        try:
            with self._path.open("rb") as file:
                for line in file:
                    # One that a crash has torn is not there, and a note that a run went back has none.
                    with contextlib.suppress(ValueError, TypeError, KeyError):
                        found.add(str(json.loads(line)["id"]))
        except FileNotFoundError:
            pass
        except OSError as error:
            raise SinkError(f"dead letters in {self._path} cannot be read: {error.strerror or error}") from error
        return found

    def put(self, record: dict[str, Any]) -> None:
        """Write one record. Values that JSON does not know are kept as their repr. Raises SinkError."""
        assert self._path is not None
        try:
            if self._file is None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._file = self._path.open("a", encoding="utf-8")
                if _torn(self._path):  # by a crash; its tuple was not acked, and comes again
                    self._file.write("\n")
            self._file.write(_line(record))
        except OSError as error:
            raise SinkError(f"dead letters cannot be kept in {self._path}: {error.strerror or error}") from error

    def sync(self) -> None:
        """Make what was put durable. Raises SinkError."""
        if self._file is not None:
            try:
                self._file.flush()
                os.fsync(self._file.fileno())
            except OSError as error:
                raise SinkError(f"dead letters cannot be kept in {self._path}: {error.strerror or error}") from error

    def close(self) -> None:
        """Close the file; it opens again with the next record."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _line(record: dict[str, Any]) -> str:
    try:
        return strict_json(record, default=repr) + "\n"
    except Exception:  # a value within itself, an int of thousands of digits, a `__repr__` that fails
        return strict_json({name: _plain(value) for name, value in record.items()}) + "\n"


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; a short repr where it has not."""
    try:
        json.dumps(value)
    except Exception:
        return brief(value)
    return value


def _torn(path: Path) -> bool:
    """Return whether the last line of a file has no end."""
    with path.open("rb") as file:
        if not file.seek(0, os.SEEK_END):
            return False
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"
