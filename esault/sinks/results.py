"""Results of a run, read back in one line: a table, an upsert table, a Delta table, JSON lines, CSV or plain Parquet, as Arrow.

Only what was committed is read. `esault.read` is the public name.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from esault.errors import SinkError, UsageError
from esault.object_store.stored_object import is_url, local_path
from esault.sinks.committed_file import committed_length
from esault.sinks.landing.log import LOG_FOLDER
from esault.sinks.landing.schema import ADDED, UPSERT_ADDED, Schema

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["read"]

_DELETED = UPSERT_ADDED[1].name
#: digits of which a whole number may be beyond 64 bits
_MANY_DIGITS = re.compile(rb"\d{19}")


def read(
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    *,
    added: bool = False,
    version: int | None = None,
) -> pa.Table:
    """The committed rows at `path` as a `pyarrow.Table`; `.to_pandas()`, `polars.from_arrow` and DuckDB take it as it is.

    `path` is the folder of a table (`SparkTable`, `Parquet`, `DeltaSink`) or an address of one of the first two,
    such as s3://bucket/t, the file of `JsonLines` or `CsvFile` (its name ends with .csv or .tsv), or plain Parquet: a
    file, a folder of them or a pattern. Of a table with a primary key that is one row for each key, the newest; of others,
    rows that a replay repeated come once. `columns`: only these. `added`: the columns too that eSault adds to a table,
    such as `_time` and `_run`. `version`: a table as it was then.

    SinkError: there is nothing, or it cannot be read. UsageError: pyarrow is missing, or there is no such column.
    """
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise UsageError("reading needs pyarrow: pip install 'esault[parquet]'") from None
    place = os.path.expanduser(local_path(os.fspath(path)))
    if is_url(place) or os.path.isdir(os.path.join(place, LOG_FOLDER)):
        rows = _of_table(place, version, columns, added)
    elif os.path.isdir(os.path.join(place, "_delta_log")):
        rows = _of_delta(place, version)
    elif version is not None:
        raise UsageError(f"{place} is no table, so it has no version {version}")
    elif os.path.isfile(place) and not _is_parquet(place):
        rows = _of_csv(place) if place.lower().endswith((".csv", ".tsv")) else _of_lines(place)
    else:
        rows = _of_parquet(place)
    if columns is None:
        return rows
    _check(place, columns, rows.schema.names)
    return rows.select(list(columns))


def _check(path: str, columns: Sequence[str], there: Sequence[str]) -> None:
    for name in columns:
        if name not in there:
            raise UsageError(f"{path} has no column {name!r}; its columns are {', '.join(there)}")


def _of_table(folder: str, version: int | None, columns: Sequence[str] | None, added: bool) -> pa.Table:
    from esault.sinks.landing import table_log
    from esault.sinks.landing.merge import first_of_each, newest_of_each, read_parts, there

    log = table_log(folder)
    state = log.at(version)
    assert state.files is not None
    ours = [column.name for column in _added(state.schema, state.primary_key)]
    wanted = None
    if columns is not None:
        # what says which row is newer, or comes twice, is needed whether it is asked for or not
        hidden = _DELETED if state.primary_key else None
        _check(folder, columns, [column.name for column in state.schema if column.name != hidden])
        wanted = [*columns, *state.primary_key, *ours]
    rows = read_parts(log.table, list(state.files.values()), state.schema, wanted)
    if state.primary_key:
        rows = there(newest_of_each(rows, state.primary_key)).drop_columns([_DELETED])
    elif ours and not state.distinct:
        rows = first_of_each(rows)
    asked = set(columns or ())
    return rows.drop_columns([n for n in rows.schema.names if n in ours and not added and n not in asked])


def _added(schema: Schema, primary_key: Sequence[str]) -> Schema:
    """The columns of a table that are not the user's, who may have some of their names where they are not added."""
    last = UPSERT_ADDED if primary_key else ADDED
    return last if schema[-len(last) :] == last else ()


def _of_delta(folder: str, version: int | None) -> pa.Table:
    try:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError
        from pyarrow import fs
    except ImportError:
        raise UsageError("reading a Delta table needs deltalake: pip install 'esault[delta]'") from None
    try:
        # By Arrow's own file system: threads of the library's live at the end of Python, and abort it.
        files = fs.SubTreeFileSystem(os.path.abspath(folder), fs.LocalFileSystem())
        return DeltaTable(folder, version=version).to_pyarrow_table(filesystem=files)
    except (DeltaError, OSError) as error:
        what = "" if version is None else f" at version {version}"
        raise SinkError(f"Delta table {folder} cannot be read{what}: {error}") from None


def _is_parquet(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(4) == b"PAR1"


def _committed(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(committed_length(path))
    except OSError as error:
        raise SinkError(f"{path} cannot be read ({error.strerror})") from None


def _of_lines(path: str) -> pa.Table:
    """The rows of JSON lines, up to the last commit; fields are columns, nested ones structs."""
    import pyarrow as pa
    import pyarrow.json as pj

    data = _committed(path)
    if not data.strip():
        return pa.table({})
    longest = max(map(len, data.split(b"\n"))) + 1
    _check_whole_numbers(path, data)
    try:
        return pj.read_json(pa.BufferReader(data), pj.ReadOptions(block_size=max(1 << 20, 2 * longest)))
    except pa.ArrowInvalid as error:
        try:
            for line in data.splitlines():
                json.loads(line)
        except ValueError:
            raise SinkError(f"{path} holds no JSON lines: {error}") from None
        raise SinkError(
            f"{path}: its lines do not fit columns, since a field has values of several types ({error}; NaN and Infinity are "
            "texts there). Read it line by line with json.loads, or land a table"
        ) from None


def _of_csv(path: str) -> pa.Table:
    """The rows of CSV, up to the last commit; the first line names the columns, whose types follow from what stands in them."""
    import pyarrow as pa
    import pyarrow.csv as pc

    data = _committed(path)
    if not data.strip():
        return pa.table({})
    form = pc.ParseOptions(delimiter="\t" if path.lower().endswith(".tsv") else ",", newlines_in_values=True)
    try:
        return pc.read_csv(pa.BufferReader(data), parse_options=form)
    except pa.ArrowInvalid as error:
        raise SinkError(f"{path} cannot be read as CSV: {error}") from None


def _check_whole_numbers(path: str, data: bytes) -> None:
    """Raise SinkError for one beyond 64 bits: Arrow would make floats of all numbers of its column."""
    if _MANY_DIGITS.search(data) is None:
        return
    for line in data.split(b"\n"):
        if _MANY_DIGITS.search(line) is not None:
            with contextlib.suppress(ValueError, RecursionError):  # who reads it says so
                number = _beyond_64_bits(json.loads(line))
                if number is not None:
                    raise SinkError(
                        f"{path} holds {number}, and columns have whole numbers of 64 bits. Read it line by line with json.loads, or land "
                        "it as text"
                    )


def _beyond_64_bits(value: Any) -> int | None:
    """The first such number in a value; None: there is none."""
    if isinstance(value, int):
        return None if -(2**63) <= value < 2**63 else value
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next((found for found in map(_beyond_64_bits, parts) if found is not None), None)


def _of_parquet(path: str) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pattern = os.path.join(glob.escape(path), "*.parquet") if os.path.isdir(path) else path
    names = sorted(glob.glob(pattern, recursive=True))
    if os.path.isfile(path):
        names = [path]
    if not names:
        what = "holds no table of eSault and no *.parquet" if os.path.isdir(path) else "is not there"
        raise SinkError(f"{path} {what}. Run the topology that writes it first, or name another path")
    try:
        return pa.concat_tables([pq.read_table(name, partitioning=None) for name in names], promote_options="default")
    except (OSError, pa.ArrowException) as error:
        raise SinkError(f"{path} cannot be read: {error}") from None
