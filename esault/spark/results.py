"""From the DataFrames of reports to their rows: as values, and landed as tables that are read back without Spark."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from esault.errors import EsaultError, SinkError, UsageError
from esault.sinks.landing import LOG_FOLDER, parts
from esault.sinks.landing.disk import LocalDisk, explained
from esault.sinks.landing.entry import Input, inputs_from_json, inputs_to_json
from esault.sinks.landing.schema import Column
from esault.spark.columns import stored
from esault.spark.derived import DerivedTable
from esault.spark.failure import failures, said
from esault.spark.plot import file_name
from esault.spark.report import ReportTable
from esault.spark.staging import writing

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

__all__ = ["KEPT", "LANDED", "Results", "asked", "collect"]

#: rows of a report that are brought back; more is no report
KEPT = 1000
#: rows of a report that come through the driver; those of a larger one are written by Spark's tasks
LANDED = 100_000
_FORMAT = 1


def asked(
    reports: Callable[[dict[str, DataFrame]], Mapping[str, DataFrame]], tables: dict[str, DataFrame]
) -> Mapping[str, DataFrame]:
    """Return what the user's function returns; UsageError when that is no dict of DataFrames."""
    from pyspark.sql import DataFrame

    frames = reports(tables)
    if not isinstance(frames, Mapping) or not frames:
        raise UsageError(
            f'reports(tables) must return a dict of DataFrames by name, such as {{"top words": ...}}, '
            f"got {_kind(frames)}"
        )
    for name, frame in frames.items():
        if not isinstance(name, str) or not isinstance(frame, DataFrame):
            raise UsageError(f"reports(tables): {name!r} must be a str with a DataFrame of Spark, got {_kind(frame)}")
    folders: dict[str, str] = {}
    for name in frames:
        other = folders.setdefault(file_name(name), name)
        if other != name:
            raise UsageError(
                f"reports(tables): {other!r} and {name!r} would both be {file_name(name)} on disk; rename one"
            )
    return frames


def _kind(value: Any) -> str:
    return "nothing; is there a `return`?" if value is None else f"{value!r} of type {type(value).__name__}"


def _ran(name: str, frame: DataFrame, most: int) -> tuple[tuple[str, ...], pa.Table]:
    """Kinds of the columns and the rows, one more than `most` where there are more; EsaultError when Spark fails."""
    from pyspark.sql import types

    def kind(data: types.DataType) -> str:
        if isinstance(data, types.NumericType):
            return "number"
        return "time" if isinstance(data, (types.TimestampType, types.TimestampNTZType, types.DateType)) else "text"

    try:
        kinds = tuple(kind(field.dataType) for field in frame.schema.fields)
        return kinds, frame.limit(most + 1).toArrow()
    except failures() as error:
        raise EsaultError(f"report {name!r}: {said(error)}") from None


def collect(name: str, frame: DataFrame) -> ReportTable:
    """The rows of a report; EsaultError when Spark fails at it."""
    kinds, arrow = _ran(name, frame, KEPT)
    # by place: a report may have two columns of one name
    rows = list(zip(*(column.to_pylist() for column in arrow.columns)))
    return ReportTable(name, tuple(frame.columns), kinds, tuple(rows[:KEPT]), len(rows) > KEPT)


@dataclass(frozen=True)
class _One:
    """A report as the list of all names it."""

    name: str
    folder: str
    columns: tuple[str, ...]
    kinds: tuple[str, ...]
    cut: bool


class Results:
    """The landed reports in a folder: a table each, and a list of them that says of what they were made.

    The list is written last, whole or not at all: reports that a kill interrupted are made again.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._list = os.path.join(folder, "reports.json")
        self._disk = LocalDisk()

    def inputs(self) -> tuple[Input, ...] | None:
        """Of what they were made; None: there are none."""
        read = self._read()
        return None if read is None else read[0]

    def folders(self) -> dict[str, str]:
        """The tables of the landed reports by name. SinkError: the list cannot be read."""
        read = self._read()
        return {} if read is None else {one.name: os.path.join(self.folder, one.folder) for one in read[1]}

    def land(self, frames: Mapping[str, DataFrame], inputs: tuple[Input, ...], say: Callable[[str], None]) -> None:
        """Run the reports and land their rows. EsaultError, which names the report, when Spark fails."""
        made = []
        for name, frame in frames.items():
            say(f"report {name!r} ...")
            kinds, arrow = _ran(name, frame, LANDED)
            folder = file_name(name)
            if arrow.num_rows > LANDED:
                del arrow
                self._write(name, os.path.join(self.folder, folder), frame, inputs)
            else:
                self._land(os.path.join(self.folder, folder), arrow, inputs)
            made.append(_One(name, folder, tuple(frame.columns), kinds, False))
        value = {
            "format": _FORMAT,
            "inputs": inputs_to_json(inputs),
            "reports": [
                {"name": o.name, "folder": o.folder, "columns": o.columns, "kinds": o.kinds, "cut": o.cut} for o in made
            ],
        }
        scratch = f"{self._list}.{os.urandom(4).hex()}.tmp"
        with explained("writing", self._list):
            self._disk.write_new(scratch, json.dumps(value, indent=1).encode())
            self._disk.rename(scratch, self._list)
            self._disk.sync_folder(self.folder)
        self._forget(one.folder for one in made)

    def _forget(self, kept: Any) -> None:
        """Remove the tables of reports that are no more."""
        known = set(kept)
        for entry in list(os.scandir(self.folder)):
            if entry.name not in known and os.path.isdir(os.path.join(entry.path, LOG_FOLDER)):
                shutil.rmtree(entry.path, ignore_errors=True)

    @staticmethod
    def _land(folder: str, arrow: pa.Table, inputs: tuple[Input, ...]) -> None:
        from esault.sinks.landing.arrow import parquet_bytes

        rows, columns = _landable(arrow)
        table = DerivedTable(folder)
        with table.locked():
            made = [table.put(memoryview(parquet_bytes(rows)), rows.num_rows)] if rows.num_rows else []
            table.commit(made, columns, inputs, table.state(), whole=True)

    @staticmethod
    def _write(name: str, folder: str, frame: DataFrame, inputs: tuple[Input, ...]) -> None:
        """Have Spark write the rows, in their order."""
        table = DerivedTable(folder)
        try:
            with writing(frame.sparkSession), table.locked():
                rows, columns = stored(name, frame.toDF(*_different(frame.columns)))
                table.commit(table.stage(rows), columns, inputs, table.state(), whole=True)
        except failures() as error:
            raise EsaultError(f"report {name!r}: {said(error)}") from None

    def load(self) -> dict[str, ReportTable]:
        """The landed reports by name, in their order, at most `KEPT` rows of each. SinkError when one cannot be read."""
        import pyarrow.parquet as pq

        read = self._read()
        loaded = {}
        for one in read[1] if read is not None else []:
            rows: list[tuple[Any, ...]] = []
            for part in parts(os.path.join(self.folder, one.folder)):
                if len(rows) > KEPT:
                    break
                with pq.ParquetFile(part) as file:  # of millions of rows the first alone
                    for batch in file.iter_batches(KEPT + 1):
                        rows += zip(*(column.to_pylist() for column in batch.columns))
                        if len(rows) > KEPT:
                            break
            cut = one.cut or len(rows) > KEPT
            loaded[one.name] = ReportTable(one.name, one.columns, one.kinds, tuple(rows[:KEPT]), cut)
        return loaded

    def _read(self) -> tuple[tuple[Input, ...], list[_One]] | None:
        try:
            value = json.loads(self._disk.read(self._list))
            if value["format"] > _FORMAT:
                return None
            made = [
                _One(o["name"], o["folder"], tuple(o["columns"]), tuple(o["kinds"]), o["cut"]) for o in value["reports"]
            ]
            return inputs_from_json(value["inputs"]), made
        except FileNotFoundError:
            return None
        except OSError as error:
            raise SinkError(f"{self._list} cannot be read: {error.strerror}") from error
        except (KeyError, TypeError, ValueError):
            return None  # damaged: the reports are made anew


def _landable(arrow: pa.Table) -> tuple[pa.Table, tuple[Column, ...]]:
    """The rows with types and names that a landed table has: what has no such type becomes text."""
    import pyarrow as pa

    from esault.sinks.landing.arrow import arrow_schema, arrow_type

    columns: list[Column] = []
    arrays = []
    for name, column in zip(_different(arrow.schema.names), arrow.columns):
        kind = _kind_of(column.type)
        if kind is None:
            texts = [None if value is None else str(value) for value in column.to_pylist()]
            made, values = Column(name, "string", True), pa.chunked_array([texts], pa.string())
        else:
            made, values = Column(name, kind, True), column
        columns.append(made)
        arrays.append(values.cast(arrow_type(made)))
    schema = tuple(columns)
    return pa.Table.from_arrays(arrays, schema=arrow_schema(schema)), schema


def _kind_of(kind: pa.DataType) -> str | None:
    """Our name for an Arrow type; None where there is none."""
    from pyarrow import types

    if types.is_decimal(kind):
        return "decimal(38,18)" if kind.scale <= 18 and kind.precision - kind.scale <= 20 else None
    known = [
        (types.is_string, "string"),
        (types.is_large_string, "string"),
        (types.is_integer, "long"),
        (types.is_floating, "double"),
        (types.is_boolean, "boolean"),
        (types.is_binary, "binary"),
        (types.is_timestamp, "timestamp"),
        (types.is_date, "date"),
    ]
    return next((name for fits, name in known if fits(kind)), None)


def _different(names: Sequence[str]) -> list[str]:
    """Names that Spark tells apart: a report may have two columns of one name."""
    seen: set[str] = set()
    made = []
    for name in names:
        new, number = name, 2
        while new.casefold() in seen:
            new, number = f"{name} {number}", number + 1
        seen.add(new.casefold())
        made.append(new)
    return made
