"""Rows by key: the newest of each, its history, or its totals; out of those of before and those that came.

What comes late counts as if it had come in time: of a key the row with the greatest sequence stands, and deletions are
remembered with theirs. Rows that come again change nothing. Of two with one sequence the greater one stands, and a row
rather than a deletion, so that it does not matter in which updates they came.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from esault.spark.table import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

__all__ = ["DELETED", "END", "START", "history", "newest", "of_keys", "totals"]

#: of a change: its key is gone
DELETED = "__deleted"
#: from which sequence on a row was so, and up to which; null: it is still
START, END = "__START_AT", "__END_AT"
#: what stands of a key, or of a version, on the way; no name that a key has
_LAST = "__last"


def of_keys(rows: DataFrame, keys: Sequence[str], wanted: DataFrame) -> DataFrame:
    """Those of the rows whose keys are in `wanted`; null is a key like others."""
    named = wanted.select(*(wanted[quoted(key)].alias(f"__key{i}") for i, key in enumerate(keys))).distinct()
    same = reduce(
        lambda one, two: one & two, (rows[quoted(k)].eqNullSafe(named[f"__key{i}"]) for i, k in enumerate(keys))
    )
    return rows.join(named, same, "left_semi")


def newest(
    before: DataFrame | None, changes: DataFrame, gone: DataFrame | None, keys: Sequence[str], by: str
) -> DataFrame:
    """Of each key the row with the greatest `by`; none where that is a deletion.

    `changes` have `DELETED`; `gone` are deletions of before, by keys and `by`.
    """
    from pyspark.sql import functions as f

    columns = [name for name in changes.columns if name != DELETED]
    events = _events(before, changes, gone, columns, [*keys, by])
    row = f.struct(*(f.col(quoted(name)) for name in columns))
    # at one place an upsert counts more than a deletion, as in a history
    there = (~f.col(DELETED)).alias("there")
    last = f.max(f.struct(f.col(quoted(by)).alias("at"), there, row.alias("row"))).alias(_LAST)
    grouped = events.groupBy(*(f.col(quoted(key)) for key in keys)).agg(last).where(f"{_LAST}.there")
    return grouped.select(*(f.col(f"{_LAST}.row").getField(name).alias(name) for name in columns))


def history(
    before: DataFrame | None, changes: DataFrame, gone: DataFrame | None, keys: Sequence[str], by: str
) -> DataFrame:
    """All versions of each key's row, from `START` up to but without `END`. As `newest`."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    columns = [name for name in changes.columns if name != DELETED]
    kept = None
    if before is not None:
        kept = before.select(*(f.col(quoted(name)) for name in columns))
        ended = before.where(f.col(END).isNotNull()).select(*(f.col(quoted(key)) for key in keys), f.col(END).alias(by))
        gone = ended if gone is None else gone.unionByName(ended)
    events = _events(kept, changes, gone, columns, [*keys, by])
    row = f.struct(*(f.col(quoted(name)) for name in columns))
    place = [f.col(quoted(name)) for name in dict.fromkeys([*keys, by])]
    # at one place an upsert counts more than a deletion
    once = f.max(f.struct((~f.col(DELETED)).alias("there"), row.alias("row"))).alias(_LAST)
    order = Window.partitionBy(*(f.col(quoted(key)) for key in keys)).orderBy(f.col(quoted(by)))
    until = f.lead(f.col(quoted(by))).over(order)
    versions = events.groupBy(*place).agg(once).withColumn(END, until).where(f"{_LAST}.there")
    values = [f.col(f"{_LAST}.row").getField(name).alias(name) for name in columns]
    return versions.select(*values, f.col(quoted(by)).alias(START), f.col(END))


def _events(
    before: DataFrame | None, changes: DataFrame, gone: DataFrame | None, columns: list[str], known: list[str]
) -> DataFrame:
    """All that is known of keys: rows, and deletions, of which only the columns `known` are."""
    from pyspark.sql import functions as f

    events = changes
    if before is not None:
        events = events.unionByName(before.withColumn(DELETED, f.lit(False)))
    if gone is not None:
        kinds = {field.name: field.dataType for field in changes.schema.fields}
        values: list[SparkColumn] = [
            f.col(quoted(n)) if n in known else f.lit(None).cast(kinds[n]).alias(n) for n in columns
        ]
        events = events.unionByName(gone.select(*values, f.lit(True).alias(DELETED)))
    return events


def totals(before: DataFrame | None, changes: DataFrame, keys: Sequence[str], how: Mapping[str, str]) -> DataFrame:
    """The totals of before with those that came, by key; `how`: column -> "sum", "min" or "max"."""
    from pyspark.sql import functions as f

    rows = changes if before is None else before.unionByName(changes)
    merged = [getattr(f, function)(f.col(quoted(name))).alias(name) for name, function in how.items()]
    made = rows.groupBy(*(f.col(quoted(key)) for key in keys)).agg(*merged)
    return made.select(*(f.col(quoted(name)) for name in changes.columns))
