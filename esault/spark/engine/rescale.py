"""A run that goes on with other tasks than it had: the state of all tasks is read out of Spark's checkpoint, for those of the next query.

Spark freezes the number of partitions with a checkpoint. Since all state is ours, in pieces that say the key of each row, the next
query begins with a checkpoint of its own, behind the last epoch that is in the journal, and its tasks take over what is theirs (`seeds`).
What Spark had begun behind that epoch was shown nowhere, and is computed anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

from esault.errors import CheckpointError
from esault.spark.engine.kept import Generation, Kept
from esault.spark.engine.offsets import resumed
from esault.spark.engine.seeds import write_seed
from esault.spark.spark_path import SparkPlace, copy_tree, put, remove_tree

__all__ = ["rescale"]


def rescale(spark: Any, kept: Kept, say: Callable[[str], None]) -> None:
    """Make the seeds of the generation that begins, and say behind which offset it does. Raises CheckpointError."""
    before, now = kept.before, kept.generation
    assert before is not None and now is not None
    folder = kept.seeds_of(now.number)
    remove_tree(folder, ignore_errors=True)  # of a life that did not begin
    try:
        if kept.newest < before.first:  # its first batch is not over: what it began with is all there is
            copy_tree(kept.seeds_of(before.number), folder)
            kept.begins_with(before.offset)
            return
        say(f"going on with other tasks: {_said(before, now)}")
        folder.mkdir(parents=True)
        _write(spark, kept, before, kept.newest - before.first, folder)
    except OSError as error:
        raise CheckpointError(
            f"{folder} cannot be written: {error.strerror or error}; free space or mend permissions"
        ) from error
    offset = resumed(kept.checkpoint_of(before), kept.newest - before.first)
    if offset is None:
        raise CheckpointError(
            f"{kept.checkpoint_of(before)} has no offset of epoch {kept.newest}: begin anew with --restart"
        )
    kept.begins_with(offset)


def _said(before: Generation, now: Generation) -> str:
    changed = [
        f"{name} {n} -> {now.layout.tasks[name]}"
        for name, n in before.layout.tasks.items()
        if now.layout.tasks[name] != n
    ]
    return ", ".join(changed) or "the same ones, otherwise placed"


def _write(spark: Any, kept: Kept, before: Generation, batch: int, folder: SparkPlace) -> None:
    _commit(kept.checkpoint_of(before), batch)
    path = kept.checkpoint_of(before).resolve().as_uri()
    _ = spark.streams  # Spark 4.1: what coordinates state stores is there once queries have been asked for
    for operator in range(len(before.layout.levels)):

        def rows(variable: str, operator: int = operator) -> Iterator[Any]:
            frame = spark.read.format("statestore").option("path", path).option("batchId", batch)
            frame = frame.option("operatorId", operator).option("stateVarName", variable)
            return iter(frame.load().toLocalIterator())

        heads = {row["key"][0]: row["value"] for row in rows("head")}
        written: set[int] = set()
        # the pieces of a task stand together, in their order
        for group, pieces in groupby(rows("pieces"), lambda row: row["key"][0]):
            _seed(before, folder, group, heads[group], (bytes(row["list_element"][0]) for row in pieces))
            written.add(group)
        for group in heads.keys() - written:
            _seed(before, folder, group, heads[group], ())


def _commit(checkpoint: SparkPlace, batch: int) -> None:
    """Write the entry of Spark's commit log for a batch that the journal has, where the run died between the two.

    Spark's reader of state takes committed batches alone. Its tasks had committed their state before the journal was written.
    """
    entry = checkpoint / "commits" / str(batch)
    if not entry.exists():
        entry.parent.mkdir(parents=True, exist_ok=True)
        put(entry, b'v1\n{"nextBatchWatermarkMs":0}')


def _seed(before: Generation, folder: SparkPlace, group: int, head: Any, pieces: Any) -> None:
    unit, task = before.layout.tasks_by_group[group]
    write_seed(folder, unit, task, head["ordinal"], bytes(head["words"]), pieces)
