"""A level of units with state: `groupBy(group).transformWithState(...)`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor
from pyspark.sql.types import BinaryType, BooleanType, LongType, StringType, StructField, StructType

from esault.spark.engine.job import Job
from esault.spark.engine.store import Head

__all__ = ["Level"]

# Of a schema that is text Spark's Java is asked what it means, for each task of each batch.
_HEAD = StructType(
    [
        StructField("token", StringType()),
        *(StructField(name, LongType()) for name in ("base", "later", "pieces", "ordinal")),
        StructField("ended", BooleanType()),
        StructField("words", BinaryType()),
    ]
)
_PIECE = StructType([StructField("piece", BinaryType())])


class Level(StatefulProcessor):  # type: ignore[misc]
    """Rows of this level's tasks go through them, all others pass."""

    def __init__(self, job: Job, units: tuple[str, ...]) -> None:
        self._job = job
        self._units = units

    def init(self, handle: Any) -> None:
        self._store = _SparkStore(handle)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        task_of = self._job.layout.tasks_by_group.get(key[0])
        if task_of is None or task_of[0] not in self._units:
            yield from rows
            return
        from pyspark import TaskContext

        # Spark has a Python of its own for each level of a query, to be told what state there is: that needs none of this.
        from esault.spark.engine.garbage import settle_garbage, spare_garbage
        from esault.spark.engine.task import run_task

        self._job.plan()
        settle_garbage()
        unit, task = task_of
        context = TaskContext.get()
        epoch = self._job.first + int(context.getLocalProperty("streaming.sql.batchId"))
        frames = [bytes(row[1]) for row in rows]
        for group, frame in run_task(self._job, unit, task, context.partitionId(), epoch, frames, self._store):
            yield Row(g=group, f=frame)
        spare_garbage()

    def close(self) -> None:
        """Objects stay for the next batch."""


class _SparkStore:
    """The state of the task whose rows are being handled."""

    def __init__(self, handle: Any) -> None:
        self._head = handle.getValueState("head", _HEAD)
        self._pieces = handle.getListState("pieces", _PIECE)

    def head(self) -> Head | None:
        found = self._head.get()
        return None if found is None else (*found[:6], bytes(found[6]))

    def set_head(self, head: Head) -> None:
        self._head.update(head)

    def pieces(self) -> Iterator[bytes]:
        return (bytes(row[0]) for row in self._pieces.get())

    def put(self, pieces: list[bytes]) -> None:
        if pieces:
            self._pieces.put([(piece,) for piece in pieces])
        else:
            self._pieces.clear()

    def append(self, pieces: list[bytes]) -> None:
        self._pieces.appendList([(piece,) for piece in pieces])
