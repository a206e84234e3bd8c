"""Loads that were recorded: a CSV file of times and rates, or of times and counts."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from datetime import datetime, timezone
from pathlib import Path

from esault.errors import UsageError
from esault.sim.load_shapes import Lines, Load, Steps

__all__ = ["load_file", "load_files"]

_SHAPES: dict[str, type[Lines] | type[Steps]] = {"lines": Lines, "steps": Steps}


def load_file(path: str | Path, *, per: float = 1.0, shape: str = "lines") -> Lines | Steps:
    """The load in a CSV file with two columns: time, and tuples a second.

    The first line may be a header. Times are seconds (any origin) or ISO 8601 dates with times, and rise from row to row; the
    first becomes 0. `per`: seconds in which the second column counts, so that a file with a count for each half hour has
    per=1800. `shape`: "lines" joins the rows by straight lines, with "steps" each rate holds until the next row; either
    way the last one holds as long as the last interval, and then it begins anew. Raises UsageError with file and line.
    """
    if shape not in _SHAPES:
        raise UsageError(f"shape={shape!r} must be one of: {', '.join(_SHAPES)}")
    if not 0 < per < math.inf:
        raise UsageError(f"per={per:g} must be a number of seconds above 0")
    file = Path(path)
    try:
        with file.open(newline="", encoding="utf-8-sig") as rows:
            times, values = _read(file, rows)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{file}: cannot be read as CSV: {error}") from None
    if len(times) < 2:
        raise UsageError(f"{file}: {len(times)} rows are no load: two are needed at least, a time and a rate in each")
    start, last = times[0], times[-1]
    rates = tuple(value / per for value in values)
    return _SHAPES[shape](tuple(t - start for t in times), rates, last - start + (last - times[-2]))


def load_files(directory: str | Path, *, per: float = 1.0, shape: str = "lines") -> dict[str, Load]:
    """The loads of all *.csv files in a directory, by file name without .csv, in order of names. Raises UsageError."""
    folder = Path(directory)
    if not folder.is_dir():
        raise UsageError(f"{folder}: is no directory of CSV files")
    return {file.stem: load_file(file, per=per, shape=shape) for file in sorted(folder.glob("*.csv"))}


def _read(file: Path, lines: Iterable[str]) -> tuple[list[float], list[float]]:
    times: list[float] = []
    values: list[float] = []
    dated: bool | None = None
    reader = csv.reader(lines)
    for row in reader:
        where = f"{file}:{reader.line_num}"
        if not row:
            continue
        if len(row) != 2:
            raise UsageError(f"{where}: {len(row)} columns; there must be two, a time and a rate")
        value = _number(row[1])
        if value is None and reader.line_num == 1:
            continue  # a header
        if value is None or not 0 <= value < math.inf:
            raise UsageError(f"{where}: the rate {row[1]!r} must be a number, 0 or more")
        at = _number(row[0])
        is_date = at is None
        if at is None:
            at = _date(row[0], where)
        if not math.isfinite(at):
            raise UsageError(f"{where}: the time {row[0]!r} must be finite")
        if dated is not None and dated != is_date:
            raise UsageError(f"{where}: the time {row[0]!r}: either all times are seconds or all are dates")
        dated = is_date
        if times and at <= times[-1]:
            raise UsageError(
                f"{where}: the time {row[0]!r} is not after the one before it; sort the rows, each time once"
            )
        times.append(at)
        values.append(value)
    return times, values


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _date(text: str, where: str) -> float:
    # Python 3.10 knows no Z.
    iso = text.strip()
    iso = iso[:-1] + "+00:00" if iso.endswith(("Z", "z")) else iso
    try:
        at = datetime.fromisoformat(iso)
    except ValueError:
        raise UsageError(f"{where}: the time {text!r} is neither seconds nor a date like 2014-07-01 00:30:00") from None
    # Without an offset it is taken as UTC, so that no hour is twice or missing.
    return (at if at.tzinfo is not None else at.replace(tzinfo=timezone.utc)).timestamp()
