"""The spouts of a run as one Python data source: its offsets are positions, its rows say which tuples a worker shall read.

One partition for each part of each spout, or several where a part has read far, each with a position to begin at, or one for several parts
where these are many. Behind the tuples of one stands what is none: pulses and the end. Who reads what came between two offsets is up to Spark, and it may be read again: spouts that seek give
the same tuples again. The process that is given a partition sends its tuples through all that is inlined behind the spout: what comes
out of the source are the frames of that.
"""

from __future__ import annotations

import heapq
import pickle
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from esault.payload.codec import Codec
from esault.spark.engine.frames import CONTROL, READ
from esault.spark.engine.offsets import Offset, latest, unpack_position

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from esault.spark.engine.job import Job

__all__ = ["SCHEMA", "SpoutSource", "dealt", "divided", "handed", "ranges", "stream"]

#: a group, and a frame
SCHEMA = "g int, f binary"
_NAME = "esault-spouts"


def stream(spark: SparkSession, job: Job, folder: Path, partitions: int, undivided: frozenset[str]) -> Any:
    """The stream of what comes of the tuples that are published in a folder; `undivided`: see `landing.undivided`."""
    from pyspark import cloudpickle

    class Spouts(SpoutSource):
        packed = cloudpickle.dumps(job)
        whole = undivided

    spark.dataSource.register(Spouts)
    return spark.readStream.format(_NAME).option("folder", str(folder)).option("partitions", str(partitions)).load()


class SpoutSource(DataSource):  # type: ignore[misc]
    """See the module."""

    #: the job. It is no option, for those are shown on Spark's pages, and not unpacked here: the Python that asks for offsets needs none of it
    packed: bytes
    whole: frozenset[str] = frozenset()

    @classmethod
    def name(cls) -> str:
        return _NAME

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        return _Reader(self.packed, Path(self.options["folder"]), int(self.options["partitions"]), self.whole)


class _Frames(InputPartition):  # type: ignore[misc]
    """Frames of one task."""

    def __init__(self, frames: Sequence[bytes]) -> None:
        super().__init__(None)
        self.frames = frames


class _Reader(DataSourceStreamReader):  # type: ignore[misc]
    def __init__(self, job: bytes, folder: Path, partitions: int, whole: frozenset[str]) -> None:
        self._job = job
        self._folder = folder
        self._partitions = partitions
        self._whole = whole

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        return latest(self._folder, first=True)

    # arguments since Spark 4.2; 4.1 calls it without
    def latestOffset(self, start: Any = None, limit: Any = None) -> Offset:  # noqa: N802 - Spark's name
        return latest(self._folder)

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        codec = Codec()
        hands = handed(start, end, self._partitions, self._whole)
        return [_Frames(list(map(codec.pack, frames))) for frames in hands]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from esault.spark.engine.stages import read_stage

        # of an empty list Spark makes one partition of its own
        return read_stage(pickle.loads(self._job), getattr(partition, "frames", ()))

    def commit(self, end: Offset) -> None:
        """Spouts hear of commits from the driver."""


def handed(start: Offset, end: Offset, partitions: int, whole: Collection[str] = ()) -> list[list[tuple[Any, ...]]]:
    """Return the frames for what came between two offsets, by Spark's tasks, for so many workers; `whole`: see `landing.undivided`."""
    hands = dealt(ranges(start, end, partitions, whole), 2 * partitions)
    control = controls(start, end)
    if control is not None:
        # Behind the tuples of a small task: one of its own would cost as much as some thousands of them.
        hands = hands or [[]]
        hands[-1].append(control)
    return hands


def ranges(start: Offset, end: Offset, partitions: int, whole: Collection[str] = ()) -> list[tuple[Any, ...]]:
    """READ frames for what came between two offsets, for so many workers; parts of the spouts `whole` are not divided."""
    moved = [
        (name, number, before, after)
        for name, parts in end["parts"].items()
        for number, (before, after) in enumerate(zip(start["parts"][name], parts))
        if after[0] > before[0]
    ]
    # Tuples of several parts take different times: then there are more pieces than workers, and the largest ones begin.
    total = sum(after[0] - before[0] for _, _, before, after in moved)
    share = total / (partitions if len(moved) < 2 else 2 * partitions)
    found = [
        (READ, name, number, *piece, _time_of(end))
        for name, number, before, after in moved
        for piece in divided(before, after, 1 if name in whole else max(1, round((after[0] - before[0]) / share)))
    ]
    return sorted(found, key=lambda frame: -frame[5])


def dealt(frames: list[tuple[Any, ...]], most: int) -> list[list[tuple[Any, ...]]]:
    """Return the frames, the largest first, for so many of Spark's tasks at most: each costs some milliseconds, and splits may be many. Each
    task reads about as many tuples, those of one part in order.
    """
    hands: list[list[tuple[Any, ...]]] = [[] for _ in range(min(most, len(frames)))]
    heap = [(0, hand) for hand in range(len(hands))]
    for frame in frames:
        rows, hand = heap[0]
        hands[hand].append(frame)
        heapq.heapreplace(heap, (rows + frame[5], hand))
    return [sorted(hand, key=lambda frame: frame[1:4]) for hand in hands]


def _time_of(end: Offset) -> float:
    """Return the time of the batch that ends here. Offsets of 0.1 have none."""
    return float(end.get("now") or time.time())


def divided(before: list[Any], after: list[Any], pieces: int) -> list[tuple[Any, ...]]:
    """(first row, position, rows, marks, position behind or None) of pieces of about the same size."""
    first, last, marks = before[0], after[0], after[3]
    # before the first row an offset has no position, and a source of splits has one all the same
    starts = [(first, before[1] or next((position for row, _, position in marks if row == first), None))]
    share = (last - first) / pieces
    places = [(row, position) for row, _, position in marks if first < row < last and position is not None]
    for number in range(1, pieces):
        row, position = min(places, key=lambda place: abs(place[0] - first - share * number), default=starts[0])
        if row > starts[-1][0]:
            starts.append((row, position))
    found = []
    for place, (row, position) in enumerate(starts):
        until = starts[place + 1][0] if place + 1 < len(starts) else last
        within = [(at, due) for at, due, _ in marks if row < at < until]
        due = next((due for at, due, _ in reversed(marks) if at <= row), marks[0][1] if marks else 0.0)
        behind = unpack_position(after[1]) if until == last else None
        found.append((row, unpack_position(position), until - row, [(row, due), *within], behind))
    return found


def controls(start: Offset, end: Offset) -> tuple[Any, ...] | None:
    """The CONTROL frame for what came between two offsets; None where nothing did."""
    pulses = {
        unit: now for unit, (number, now) in end["pulses"].items() if start["pulses"].get(unit, (0, 0.0))[0] != number
    }
    ended = end["end"] and not start["end"]
    over = [
        (name, number)
        for name, parts in end["parts"].items()
        for number, (before, after) in enumerate(zip(start["parts"][name], parts))
        if after[2] and not before[2]
    ]
    wake = end.get("generation", 0) != start.get("generation", 0)
    return (CONTROL, ended, pulses, over, _time_of(end), wake) if ended or pulses or over or wake else None
