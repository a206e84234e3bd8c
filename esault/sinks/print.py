"""Rows in the terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import islice
from typing import Any, ClassVar

from esault.errors import SinkError
from esault.topology.sink import Row, Sink

__all__ = ["Print"]


class Print(Sink):
    """Prints the key and value of each row as it comes; to look at a topology, as Flink's `print()` does.

    Lines appear in the terminal of the command, marked with the unit: `[count/3] cat 5`. In tests and with `--engine local` they go
    to standard output as they are. Nothing waits for a checkpoint, so a row that is processed again is printed again. On Spark lines
    stand in the logs of its workers.
    """

    delivery_guarantee: ClassVar[str] = "at least once, as rows come"

    def __init__(self, label: str = "", limit: int | None = None) -> None:
        """`label` stands before each line. `limit`: rows that each sub-unit prints at most; the others are dropped. Raises SinkError."""
        if not isinstance(label, str):
            raise SinkError(f"Print(label={label!r}): the label is a string, such as 'totals:'")
        if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 0):
            raise SinkError(f"Print(limit={limit!r}): a number of rows, 0 or more, or None for all")
        self._before = f"{label} " if label else ""
        self._left = limit

    def write(self, rows: Sequence[Row]) -> None:
        """Print the rows, a line each."""
        self._print((row.key, row.value) for row in rows)

    def write_columns(self, keys: Any, values: Any, time: float, ids: Sequence[str] | None) -> None:
        """Print the rows; no object is made for each."""
        self._print(zip(keys, values))

    def _print(self, rows: Any) -> None:
        if self._left is not None:
            rows = list(islice(rows, self._left))
            self._left -= len(rows)
        text = "".join(f"{self._before}{key} {value}\n" for key, value in rows)
        if text:
            sys.stdout.write(text)
            sys.stdout.flush()
