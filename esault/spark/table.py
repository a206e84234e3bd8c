"""Landed tables as DataFrames."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date, datetime, timezone
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from esault.errors import SinkError, UsageError
from esault.object_store.stored_object import is_url
from esault.sinks.landing import table_log
from esault.sinks.landing.evolve import EXACT_FLOAT
from esault.sinks.landing.part_file import part_file
from esault.sinks.landing.schema import ADDED, Column, Schema
from esault.spark.file_system import hadoop_url, require_file_system
from esault.spark.session import require_pyspark

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

__all__ = [
    "NULL_FOLDER",
    "newest_rows",
    "part_schema",
    "read_parts",
    "read_table",
    "spark_schema",
    "table_schema",
    "uri",
    "without_duplicates",
]

#: the value of a folder `column=...` whose rows have null there, or an empty text
NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"


def _types() -> dict[str, DataType]:
    """Spark's types by the names of those in the log."""
    from pyspark.sql import types

    return {
        "string": types.StringType(),
        "long": types.LongType(),
        "double": types.DoubleType(),
        "boolean": types.BooleanType(),
        "binary": types.BinaryType(),
        "timestamp": types.TimestampType(),
        "date": types.DateType(),
        "decimal(38,18)": types.DecimalType(38, 18),
    }


def spark_type(kind: str) -> DataType:
    """Spark's type for the name of one in the log."""
    return _types()[kind]


def spark_schema(schema: Schema) -> StructType:
    """The columns of a table as Spark's; all nullable, as Spark's own file sources have them."""
    from pyspark.sql import types

    return types.StructType([types.StructField(column.name, spark_type(column.type), True) for column in schema])


def table_schema(schema: StructType) -> Schema:
    """The reverse: the columns of a table that a query asks for. UsageError for a type that no table has."""
    kinds = {kind: name for name, kind in _types().items()}
    for field in schema.fields:
        if field.dataType not in kinds:
            raise UsageError(
                f"column {field.name!r} is asked for as {field.dataType.simpleString()}, which a table has not; take the type that "
                "it has, and cast what comes"
            )
    return tuple(Column(field.name, kinds[field.dataType], True) for field in schema.fields)


def read_table(
    spark: SparkSession,
    path: str | os.PathLike[str],
    duplicates: bool = False,
    version: int | None = None,
    partitions: Mapping[str, Iterable[Any]] | None = None,
) -> DataFrame:
    """The rows that are visible in the table in folder `path`, or at an address: exactly those of the parts that its log names.

    Of a table with a primary key that is one row for each key, the newest; `duplicates=True` gives all that is kept.
    `duplicates=False` drops rows that a replay repeated (same `_run` and `_id`; of rows without an id, all are kept). That costs a
    shuffle of all ids, and is left out where the log says that no run has repeated any.
    `version`: as the table was then. `partitions`: only these folders of a partitioned table, by values or by texts, such as
    `{"date": ["2026-01-01"]}`. SinkError when there is no table, or no such version. Later commits do not
    change the DataFrame: read again for them.
    """
    require_pyspark()
    log = table_log(path)
    state = log.at(version)
    assert state.files is not None
    names = list(state.files) if partitions is None else _within(state.files, partitions, log.table, state.schema)
    frame = read_parts(spark, log.table, names, state.schema, state.evolved)
    if state.primary_key:
        return frame if duplicates else newest_rows(frame, state.primary_key).where("NOT _deleted").drop("_deleted")
    return frame if duplicates or state.distinct else without_duplicates(frame)


def read_parts(
    spark: SparkSession,
    folder: str,
    names: Collection[str],
    schema: Schema,
    evolved: bool,
    kept: str | None = None,
) -> DataFrame:
    """Parts of the table in `folder`, with the columns of `schema`; `evolved` says that parts may have others.

    `kept`: the name of a column to add with the row as JSON where widening would make another value of it (null there
    then), null elsewhere; without it Spark raises an error for such a row.
    """
    from pyspark.sql import functions as f

    folder = folder if is_url(folder) else os.path.abspath(folder)
    if not names:
        empty = spark.createDataFrame([], spark_schema(schema))
        return empty if kept is None else empty.withColumn(kept, f.lit(None).cast("string"))
    if is_url(folder):
        require_file_system(spark, folder)
    groups: dict[Schema, list[str]] = {}
    for name in names:
        path = os.path.join(folder, name)
        groups.setdefault(part_schema(path, schema) if evolved else schema, []).append(path)
    frames = []
    for columns, paths in groups.items():
        frame = spark.read.schema(spark_schema(columns)).parquet(*map(uri, paths))
        frames.append(_conform(frame, columns, schema, kept))
    return reduce(lambda one, other: one.unionByName(other), frames)


def part_schema(path: str, schema: Schema) -> Schema:
    """Those of the table's columns that a part has, with the types that they have in it. SinkError: no such part."""
    import pyarrow.parquet as pq

    from esault.sinks.landing.arrow import arrow_type

    try:
        with part_file(path) as file:
            there: pa.Schema = pq.read_schema(file)
    except FileNotFoundError:
        raise SinkError(
            f"{path} is gone: the table was compacted or replaced since, and vacuum removed it. Read the table anew, "
            "without version= or with a newer one"
        ) from None
    columns = []
    for column in schema:
        place = there.get_field_index(column.name)
        if place < 0:
            continue
        kind = column.type if there.field(place).type == arrow_type(column) else "long"
        columns.append(Column(column.name, kind, column.nullable))
    return tuple(columns)


def _conform(frame: DataFrame, columns: Schema, schema: Schema, kept: str | None) -> DataFrame:
    """The columns of the table out of those of some of its parts."""
    from pyspark.sql import functions as f

    metadata = [f.col("_metadata")] if kept is not None else []
    there = {column.name: column.type for column in columns}
    chosen: list[SparkColumn] = []
    unfit: SparkColumn = f.lit(False)
    for column in schema:
        value = f.col(quoted(column.name))
        kind = spark_type(column.type)
        if column.name not in there:
            chosen.append(f.lit(None).cast(kind).alias(column.name))
        elif there[column.name] == column.type:
            chosen.append(value)
        else:
            # of all whole numbers floats hold only those up to 2**53; a Decimal holds all of 64 bits
            fits = f.abs(value.cast("decimal(20,0)")) <= EXACT_FLOAT if column.type == "double" else f.lit(True)
            other: SparkColumn = f.lit(None).cast(kind)
            if kept is None:
                said = f.concat(
                    f.lit(f"column {column.name!r} was widened from int to float, and "),
                    value.cast("string"),
                    f.lit(" would be another number; `esault analyze` puts such rows aside"),
                )
                other = f.raise_error(said).cast(kind)
            unfit = unfit | (value.isNotNull() & ~fits)
            chosen.append(f.when(value.isNull() | fits, value.cast(kind)).otherwise(other).alias(column.name))
    if kept is not None:
        row = f.to_json(f.struct(*(f.col(quoted(column.name)) for column in columns)))
        chosen.append(f.when(unfit, row).alias(kept))
    return frame.select(*chosen, *metadata)


def quoted(name: str) -> str:
    """The name of a column as Spark's expressions want it."""
    return f"`{name.replace('`', '``')}`"


def _within(names: Iterable[str], partitions: Mapping[str, Iterable[Any]], table: str, schema: Schema) -> list[str]:
    """The parts in the folders that are wanted."""
    kinds = {column.name: column.type for column in schema}
    wanted = {}
    for column, values in partitions.items():
        if isinstance(values, (str, bytes)):
            raise UsageError(
                f'partitions names a list of values for each column, such as {{"shop": ["north"]}}, not {values!r}'
            )
        wanted[column] = _Wanted(kinds.get(column, "date"), values)
    found = []
    for name in names:
        levels = (level.partition("=") for level in name.split("/")[:-1])
        folders = {column: unquote(value) for column, _, value in levels}
        for column in wanted:
            if column not in folders:
                raise UsageError(
                    f"table {table} is not partitioned by {column!r}; it is by: {', '.join(folders) or 'nothing'}"
                )
        if all(folders[column] in values for column, values in wanted.items()):
            found.append(name)
    return found


class _Wanted:
    """The values of a column of this kind whose folders are wanted: as Python has them, or as texts that are those of folders."""

    def __init__(self, kind: str, values: Iterable[Any]) -> None:
        self._kind = kind
        self._values = [_in_utc(value) for value in values]
        self._texts = {NULL_FOLDER if value is None or value == "" else str(value) for value in self._values}

    def __contains__(self, folder: str) -> bool:
        if folder in self._texts:
            return True
        try:
            value = _FOLDERS[self._kind](folder) if self._kind in _FOLDERS else folder
        except (ArithmeticError, ValueError):
            return False  # null
        return any(value == wanted for wanted in self._values)


def _in_utc(value: Any) -> Any:
    """An instant without a zone is of UTC, as in all tables."""
    return value.replace(tzinfo=timezone.utc) if isinstance(value, datetime) and value.tzinfo is None else value


def _instant(text: str) -> datetime:
    seconds, _, fraction = text.partition(".")
    return datetime.fromisoformat(seconds).replace(microsecond=int(fraction.ljust(6, "0") or 0), tzinfo=timezone.utc)


#: the value of a folder's name, as Spark writes those of columns of these kinds
_FOLDERS: dict[str, Callable[[str], Any]] = {
    "long": int,
    "double": float,
    "boolean": {"true": True, "false": False}.get,
    "timestamp": _instant,
    "date": date.fromisoformat,
    "decimal(38,18)": Decimal,
}


def uri(path: str) -> str:
    """The path for Spark's readers: on this file system whatever the default one is, and never taken for a pattern.

    (Their option __globPaths__=false is no way out: with it each path that looks like a pattern is read once per path.)
    """
    url = hadoop_url(path) if is_url(path) else f"file://{path}"
    return re.sub(r"([\\[\]{}*?,])", r"\\\1", url)


def newest_rows(frame: DataFrame, key: Sequence[str]) -> DataFrame:
    """The newest row of each key by `_updated`, deletions among them."""
    from pyspark.sql import functions as f

    row = f.struct(*(f.col(quoted(name)) for name in frame.columns))
    newest = f.max_by(row, f.col("_updated")).alias("row")
    grouped = frame.groupBy(*(f.col(quoted(name)) for name in key)).agg(newest)
    return grouped.select(*(f.col("row").getField(name).alias(name) for name in frame.columns))


def without_duplicates(frame: DataFrame) -> DataFrame:
    """The DataFrame without rows that a replay repeated; as it is when it has no ids."""
    from pyspark.sql import functions

    if not {column.name for column in ADDED}.issubset(frame.columns):
        return frame
    # what has no id counts as a row of its own; the prefixes keep the two kinds apart
    own = functions.concat(functions.lit("n"), functions.monotonically_increasing_id())
    name = "_id or own"
    marked = frame.withColumn(name, functions.coalesce(functions.concat(functions.lit("i"), "_id"), own))
    return marked.dropDuplicates(["_run", name]).drop(name)
