"""The rows that repeat others, found without moving the rows themselves.

To sort all rows by their ids, of which one in a thousand stands twice, costs more than all else that cleaning does. So
the ids alone are counted first, as numbers of 64 bits; the rows of those that come more than once are compared by the
rule (`once`); and where each of the few that lose stands is told to all tasks. What two ids have by chance the same
number is compared too, and both stay.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from esault.sinks.landing.schema import ADDED
from esault.spark.rows import PART, ROW, once

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

__all__ = ["each_once"]

#: fewer rows are sorted at once: that is one job, and not three
FEW = 1_000_000
#: rows that may be repetitions, at most, to be told to all tasks; where there are more, all are sorted
MANY = 1_000_000
#: ids that one task counts: they fit into its memory
_A_TASK = 250_000
_NUMBER, _LOST, _NEW, _COUNT = "__number", "__lost", "__new", "__count"


@contextlib.contextmanager
def each_once(
    rows: DataFrame, known: Sequence[DataFrame], runs: Collection[str], count: int, known_count: int
) -> Iterator[DataFrame]:
    """`once(rows, known, runs)`, for the time of the block. `count`: of the rows, about; `known_count`: of those of `known`."""
    if count < FEW or not {column.name for column in ADDED} <= set(rows.columns):
        yield once(rows, known, runs)
        return
    with contextlib.ExitStack() as stack:

        def kept(frame: DataFrame) -> DataFrame:
            stack.callback(frame.persist().unpersist)
            return frame

        yield _without(rows, known, runs, count + known_count, kept)


def _without(
    rows: DataFrame,
    known: Sequence[DataFrame],
    runs: Collection[str],
    count: int,
    kept: Callable[[DataFrame], DataFrame],
) -> DataFrame:
    from pyspark.sql import functions as f

    ids = rows.where("_id IS NOT NULL").select(_number().alias(_NUMBER), f.lit(True).alias(_NEW))
    for table in known:
        before = table.where(f.col("_run").isin(sorted(runs)) & f.col("_id").isNotNull())
        ids = ids.union(before.select(_number(), f.lit(False)))
    counted = ids.repartition(max(1, count // _A_TASK), _NUMBER).groupBy(_NUMBER)
    counted = counted.agg(f.count(f.lit(1)).alias(_COUNT), f.max(_NEW).alias(_NEW))
    twice = kept(counted.where(f.col(_NEW) & (f.col(_COUNT) > 1)).select(_NUMBER, _COUNT))
    first = twice.agg(f.sum(_COUNT)).first()
    found = 0 if first is None or first[0] is None else int(first[0])
    if not found:
        return rows
    if found > MANY:
        return once(rows, known, runs)
    places = rows.select("_run", "_id", "_time", PART, ROW).where("_id IS NOT NULL").withColumn(_NUMBER, _number())
    suspects = kept(places.join(f.broadcast(twice.select(_NUMBER)), _NUMBER, "left_semi"))
    losing = suspects.join(once(suspects, known, runs).select(PART, ROW), [PART, ROW], "left_anti")
    lost = kept(losing.groupBy(_NUMBER).agg(f.collect_list(f.struct(PART, ROW)).alias(_LOST)))
    marked = rows.withColumn(_NUMBER, _number()).join(f.broadcast(lost), _NUMBER, "left")
    place = f.struct(f.col(PART), f.col(ROW))
    stays = f.col(_LOST).isNull() | ~f.array_contains(f.col(_LOST), place)
    return marked.where(stays).drop(_NUMBER, _LOST)


def _number() -> SparkColumn:
    """Return a number for a row's id."""
    from pyspark.sql import functions as f

    return f.xxhash64("_run", "_id")
