"""Tables: Parquet as the plain loop and Bytewax write it, and what any engine has landed, read again."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["DAYS", "LINES", "WORDS", "Table", "rows", "times"]

WORDS = {"word": str, "total": int}
LINES = {"line": str, "flights": int, "minutes": int, "worst": int}
DAYS = {"day": str, "flights": int, "cancelled": int, "late": int}
#: rows of a row group; as many as eSault commits at once
GROUP = 10_000


class Table:
    """A Parquet file in `folder`, one of any number; the key fills the first column, the value the others."""

    def __init__(self, folder: str | Path, columns: dict[str, type]) -> None:
        import pyarrow
        import pyarrow.parquet

        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._arrow = pyarrow
        kinds = {str: pyarrow.string(), int: pyarrow.int64()}
        self.schema = pyarrow.schema([(name, kinds[kind]) for name, kind in columns.items()])
        self.name = uuid.uuid4().hex
        self._file = pyarrow.parquet.ParquetWriter(self.folder / f"{self.name}.parquet", self.schema)
        self._waiting: list[tuple[Any, ...]] = []
        self.first = self.last = 0.0
        self.first_rows = 0

    def __enter__(self) -> Table:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def take(self, pairs: Sequence[tuple[Any, Any]]) -> None:
        """Rows, written when there are enough."""
        self._waiting += [(key, *value) if isinstance(value, tuple) else (key, value) for key, value in pairs]
        if len(self._waiting) >= GROUP:
            self._write()

    def _write(self) -> None:
        if not self._waiting:
            return
        arrays = [self._arrow.array(column, each.type) for column, each in zip(zip(*self._waiting), self.schema)]
        self._file.write_batch(self._arrow.record_batch(arrays, schema=self.schema))
        self.last = time.time()
        if not self.first:
            self.first, self.first_rows = self.last, len(self._waiting)
        self._waiting = []

    def close(self) -> None:
        """Write the rest, and say when rows came."""
        self._write()
        self._file.close()
        if self.first:
            self.last = time.time()
            said = {"first": self.first, "first_rows": self.first_rows, "last": self.last}
            (self.folder / f"seen.{self.name}").write_text(json.dumps(said))


def _parts(folder: Path) -> list[Path]:
    from esault.sinks.landing import parts

    return [Path(part) for part in parts(folder)] if (folder / "_esault_log").exists() else [*folder.glob("*.parquet")]


def rows(folder: Path) -> list[tuple[Any, Any]]:
    """(key, value) of a table, without the columns that eSault adds."""
    import pyarrow.parquet

    found: list[tuple[Any, Any]] = []
    for part in _parts(folder):
        read = pyarrow.parquet.read_table(part)
        columns = [read[name].to_pylist() for name in read.schema.names if not name.startswith("_")]
        found += [(row[0], row[1] if len(row) == 2 else row[1:]) for row in zip(*columns)]
    return found


def times(folders: Sequence[Path]) -> dict[str, Any]:
    """Rows of the tables, when the first came, how many at once, and when the last. Raises RuntimeError where there are none.

    eSault's parts say it by when they were written. A plain Parquet file can only be read when it is whole: its first
    rows are the first that were written.
    """
    import pyarrow.parquet

    said: list[dict[str, Any]] = []
    count = 0
    for folder in folders:
        lengths = {part: pyarrow.parquet.ParquetFile(part).metadata.num_rows for part in _parts(folder)}
        count += sum(lengths.values())
        if (folder / "_esault_log").exists():
            written = [(part.stat().st_mtime, length) for part, length in lengths.items()]
            said += [{"first": at, "first_rows": length, "last": at} for at, length in written]
        else:
            said += [json.loads(file.read_text()) for file in folder.glob("seen.*")]
    if not count:
        raise RuntimeError(f"{', '.join(map(str, folders))}: no rows landed")
    first = min(said, key=lambda each: each["first"])
    last = max(each["last"] for each in said)
    return {"rows": count, "first": first["first"], "first_rows": first["first_rows"], "last": last}
