"""The user's own store behind a sink, the same on every engine: takes (key, value) pairs, and says in a file when they came.

With `check` it keeps all that it is given, so that what engines put out can be compared.
"""

from __future__ import annotations

import json
import pickle
import time
import uuid
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["Store", "kept", "times"]

#: texts longer than this are kept as their checksum
LONG = 1000


class Store:
    """One of any number that write into `folder`."""

    def __init__(self, folder: str | Path, check: bool, of: str = "") -> None:
        self.folder, self.check = Path(folder), check
        self.folder.mkdir(parents=True, exist_ok=True)
        self.name = f"{of}-{uuid.uuid4().hex}"
        self.rows, self.first_rows, self.first, self.last = 0, 0, 0.0, 0.0
        self._file = (self.folder / f"kept.{self.name}").open("wb") if check else None

    def take(self, rows: Sequence[tuple[Any, Any]]) -> None:
        """Rows, in the order in which they came."""
        self.last = time.time()
        if not self.rows:
            self.first, self.first_rows = self.last, len(rows)
        self.rows += len(rows)
        if self._file is not None:
            pickle.dump([(key, _short(value)) for key, value in rows], self._file)

    def close(self) -> None:
        """Say what came."""
        if self._file is not None:
            self._file.close()
        said = {"rows": self.rows, "first": self.first, "first_rows": self.first_rows, "last": self.last}
        (self.folder / f"seen.{self.name}").write_text(json.dumps(said))


def _short(value: Any) -> Any:
    return zlib.crc32(value.encode()) if isinstance(value, str) and len(value) > LONG else value


def times(folder: Path) -> dict[str, Any]:
    """Rows of all stores in the folder, when the first came, how many at once, and when the last. Raises RuntimeError where there are none."""
    said = [json.loads(file.read_text()) for file in folder.glob("seen.*")]
    filled = [each for each in said if each["rows"]]
    if not filled:
        raise RuntimeError(f"{folder}: no rows came out")
    return {
        "rows": sum(each["rows"] for each in filled),
        **min(({name: each[name] for name in ("first", "first_rows")} for each in filled), key=lambda e: e["first"]),
        "last": max(each["last"] for each in filled),
    }


def kept(folder: Path) -> list[tuple[Any, Any]]:
    """All rows that stores with `check` were given."""
    rows: list[tuple[Any, Any]] = []
    for file in folder.glob("kept.*"):
        with file.open("rb") as batches:
            while True:
                try:
                    rows += pickle.load(batches)
                except EOFError:
                    break
    return rows
