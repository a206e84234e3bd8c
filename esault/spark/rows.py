"""The cleaning of rows in Spark's words: each once, why one is bad, where it goes.

Columns that are added on the way have two underscores in front and never reach a table.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from esault.errors import UsageError
from esault.sinks.landing.schema import ADDED, Column, Schema
from esault.spark.failure import said
from esault.spark.table import quoted, read_parts

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "DATE",
    "PART",
    "QUARANTINE",
    "REASON",
    "ROW",
    "UNFIT",
    "aside",
    "check_columns",
    "check_folders",
    "folders_of",
    "once",
    "parts_with_places",
    "reason",
]

#: the folder of a row's day, UTC; unless the table has a column of that name
DATE = "date"
#: columns of every quarantine; `rows` is how many a damaged part had, by the log, and 1 elsewhere
QUARANTINE: Schema = (
    Column("reason", "string"),
    Column("row", "string", True),
    Column("part", "string"),
    Column("rows", "long"),
    *(replace(column, nullable=True) for column in ADDED),
)
#: why a row is bad; null for a good one
REASON = "__reason"
#: the row as JSON, where widening would make another value of it
UNFIT = "__unfit"
#: where the row stands: the part's name, and its number in there
PART, ROW = "__part", "__row"

#: different values of a user's column that may be folders
_MOST_FOLDERS = 1000


def check_columns(table: str, schema: Schema) -> None:
    """Raise UsageError for a column that is called as one that is added on the way."""
    taken = [column.name for column in schema if column.name.startswith("__") or column.name.lower() == "_metadata"]
    if taken:
        raise UsageError(
            f"table {table} has a column {taken[0]!r}: two underscores in front, and _metadata, are names of those that Spark and eSault "
            "add while a table is cleaned. Have its topology land the column under another name"
        )


def parts_with_places(
    spark: SparkSession, folder: str, names: Collection[str], schema: Schema, evolved: bool
) -> DataFrame:
    """The rows of parts, each with where it stands."""
    from pyspark.sql import functions as f

    rows = read_parts(spark, folder, names, schema, evolved, kept=UNFIT)
    placed = rows.withColumn(PART, f.col("_metadata.file_name")).withColumn(ROW, f.col("_metadata.row_index"))
    return placed.drop("_metadata")


def once(rows: DataFrame, known: Sequence[DataFrame], runs: Collection[str]) -> DataFrame:
    """Each row once: neither twice in `rows`, nor again after it came into one of the tables `known`, which have no
    others of these `runs`' than them. Of rows that say they are the same, that of the least time stays."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    if not {column.name for column in ADDED} <= set(rows.columns):
        return rows
    # what has no id counts as a row of its own; the prefixes keep the two kinds apart
    own = f.concat(f.lit("n"), PART, f.lit("/"), f.col(ROW).cast("string"))
    marked = rows.withColumn("__own", f.coalesce(f.concat(f.lit("i"), "_id"), own))
    order = Window.partitionBy("_run", "__own").orderBy("_time", PART, ROW)
    first = marked.withColumn("__place", f.row_number().over(order)).where("__place = 1").drop("__place", "__own")
    for table in known:
        before = table.where(f.col("_run").isin(sorted(runs)) & f.col("_id").isNotNull())
        first = first.join(before.select("_run", "_id"), ["_run", "_id"], "left_anti")
    return first


def reason(table: str, rows: DataFrame, schema: Schema, expectations: Mapping[str, str]) -> SparkColumn:
    """Return why a row is bad; null for a good one. UsageError for an expectation that is no condition on a row."""
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as f

    unfit = f.col(UNFIT).isNotNull()
    reasons = [f.when(unfit, f.lit("an int is none of the floats that its column holds by now"))]
    for column in schema:
        if not column.nullable:
            null = f"column {column.name!r} is null, and is declared {column.python}"
            reasons.append(f.when(f.col(quoted(column.name)).isNull() & ~unfit, f.lit(null)))
    for name, condition in expectations.items():
        try:
            holds = f.coalesce(f.expr(condition), f.lit(False))
            rows.where(~holds)  # where an aggregate is none, which one of all rows may be
        except AnalysisException as error:
            raise UsageError(
                f"expectations of {table}: {name!r} is no condition on a row ({condition}): {said(error)}"
            ) from None
        reasons.append(f.when(~unfit & ~holds, f.lit(f"not as expected: {name}")))
    return f.nullif(f.concat_ws("; ", *reasons), f.lit(""))


def aside(marked: DataFrame, schema: Schema) -> DataFrame:
    """The bad ones of rows that have a reason, as the quarantine has them."""
    from pyspark.sql import functions as f

    row = f.coalesce(f.col(UNFIT), f.to_json(f.struct(*(f.col(quoted(c.name)) for c in schema))))
    kinds = {"_id": "string", "_time": "timestamp", "_run": "string"}
    there = {column.name for column in schema}
    return marked.where(f.col(REASON).isNotNull()).select(
        f.col(REASON).alias("reason"),
        row.alias("row"),
        f.col(PART).alias("part"),
        f.lit(1).cast("long").alias("rows"),
        *(f.col(n) if n in there else f.lit(None).cast(kind).alias(n) for n, kind in kinds.items()),
    )


def folders_of(table: str, schema: Schema, chosen: Sequence[str] | None) -> dict[str, SparkColumn]:
    """Names of the folders' columns, and what is in them; by default the day. UsageError for what cannot be one."""
    from pyspark.sql import functions as f

    there = {column.name for column in schema}
    if chosen is None:
        chosen = (DATE,) if "_time" in there else ()
    values = {}
    for name in chosen:
        if "/" in name or "=" in name or "\\" in name:
            raise UsageError(f"partition_by of {table}: {name!r} cannot be the name of a folder")
        if name in there:
            values[name] = f.col(quoted(name))
        elif name == DATE and "_time" in there:
            values[name] = f.to_date("_time")
        else:
            raise UsageError(
                f"partition_by of {table}: there is no column {name!r}; there are: {', '.join(sorted(there))}"
                + (", and date, the day of _time" if "_time" in there else "")
            )
    return values


def check_folders(table: str, rows: DataFrame, folders: Mapping[str, SparkColumn]) -> None:
    """UsageError when that would be too many."""
    values = rows.select(*(value.alias(f"__{i}") for i, value in enumerate(folders.values())))
    if len(values.distinct().limit(_MOST_FOLDERS + 1).collect()) > _MOST_FOLDERS:
        raise UsageError(
            f"partition_by of {table}: {', '.join(folders)} has more than {_MOST_FOLDERS:,} values, each of which would "
            "be a folder of small files; choose a column with fewer"
        )
