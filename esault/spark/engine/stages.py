"""The stages of the query: functions that Spark runs in its workers, on rows of (group, frame)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from esault.flow.watermark.clock import END_OF_TIME
from esault.payload.codec import Codec
from esault.spark.engine.event_time import SILENT, ways_from
from esault.spark.engine.frames import (
    CONTROL,
    COUNTS,
    DATA,
    END,
    HANDLE,
    PULSE,
    WAKE,
    WORD,
    Sealed,
    batches_of,
    in_order,
)
from esault.spark.engine.garbage import settle_garbage, spare_garbage
from esault.spark.engine.job import Job
from esault.spark.engine.landing import Landing
from esault.spark.engine.reader import read_range
from esault.spark.engine.runners import Runners
from esault.spark.engine.timings import leave_times

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["land", "read", "read_stage", "sink_stage"]

#: bytes of frames that one batch of Arrow's has, at least
_BYTES = 1 << 20
#: the last stage, which has the name of no unit
_SINKS = " sinks"

#: runners of spouts in this worker, by run, unit and part
_SPOUTS: dict[tuple[str, str, int], Runners] = {}


def read_stage(job: Job, frames: Iterable[bytes]) -> Iterator[pa.RecordBatch]:
    """For the source: tuples of spouts, through all that is inlined behind them."""
    job.plan()
    settle_garbage()
    yield from _arrow(read(job, _partition(), frames))
    spare_garbage()


def sink_stage(job: Job) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For `mapInArrow`: rows of sinks are written and prepared; what sinks say, and all that was counted, goes to the driver."""

    def stage(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from _arrow(land(job, _partition(), job.first + _epoch(), _rows(batches)))
        spare_garbage()

    return stage


def read(job: Job, partition: int, frames: Iterable[bytes]) -> Iterator[Sealed]:
    """See `read_stage`."""
    job.plan()  # before bytes are read: it loads the classes that they name
    codec = Codec()
    for data in frames:
        frame = codec.unpack(data)
        if frame[0] == CONTROL:
            yield from _control(job, codec, *frame[1:])
            continue
        unit, part = frame[1:3]
        place = (job.run, unit, part)
        runners = _SPOUTS.pop(place, None)  # back at the end: one that failed may hold anything
        if runners is None:
            for other in [p for p in _SPOUTS if p[0] != job.run]:
                _SPOUTS.pop(other).let_go()
            runners = Runners(job, unit, part, part)
        try:
            yield from _range(job, runners, partition, frame)
        except BaseException:
            runners.let_go()
            raise
        _SPOUTS[place] = runners


def _range(job: Job, runners: Runners, partition: int, frame: Any) -> Iterator[Sealed]:
    _, unit, part, row, _, count, _, behind, now = frame
    runners.begin(partition, f"{unit}/{part}", row, now)
    began = time.monotonic()
    for _ in read_range(job, runners, frame):
        runners.say(f"{unit}/{part}", SILENT, between=True)
        yield from runners.outbox.pop_sealed()
    runners.settle()  # clocks on the ways from here go by what comes of it
    runners.say(f"{unit}/{part}", SILENT)
    end = {(unit, part): (row + count, behind)}
    passing = job.layout.passing[partition % job.layout.partitions]
    runners.outbox.put(passing, (COUNTS, runners.counts(), end, False))
    yield from runners.outbox.pop_sealed(flush=True)
    leave_times(job.shared, runners.times(), unit, time.monotonic() - began)


def _control(
    job: Job, codec: Codec, end: bool, pulses: dict[str, float], over: Any, now: float, wake: bool = False
) -> Iterator[Sealed]:
    for unit, part in over:  # its time is waited for no more
        for target, way in ways_from(job.plan(), job.layout, f"{unit}/{part}"):
            for task in range(job.layout.tasks[target]):
                yield job.layout.groups[target, task], codec.pack((WORD, way, END_OF_TIME, now))
    for (unit, _), group in job.layout.groups.items():
        if wake:
            yield group, codec.pack((WAKE, now))
        if unit in pulses:
            yield group, codec.pack((PULSE, pulses[unit]))
        if end:
            yield group, codec.pack((END, now))
    if end:
        yield job.layout.passing[0], codec.pack((COUNTS, {}, {}, True))


def land(job: Job, partition: int, epoch: int, frames: Iterable[bytes]) -> Iterator[Sealed]:
    """See `sink_stage`."""
    sinks = {s.name: s.sink for s in job.plan().sinks if not s.sink.collects}
    codec = Codec()
    data = []
    for packed in frames:
        frame = codec.unpack(packed)
        if frame[0] == DATA and frame[4] in sinks:
            data.append(frame)
        else:  # what is collected is so where the caller is
            yield 0, packed
    if data:
        landing, began = Landing(job, partition, sinks), time.monotonic()
        for frame in in_order(data):
            landing.write(frame[4], batches_of(codec, frame[5]))
        for sink, handle in landing.prepare(epoch):
            yield 0, codec.pack((HANDLE, sink, codec.pack_value(handle)))
        leave_times(job.shared, {}, _SINKS, time.monotonic() - began)


def _rows(batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    for batch in batches:
        yield from batch.column(1).to_pylist()


def _arrow(sealed: Iterator[Sealed]) -> Iterator[pa.RecordBatch]:
    groups: list[int] = []
    frames: list[bytes] = []
    size = 0
    for group, frame in sealed:
        groups.append(group)
        frames.append(frame)
        size += len(frame)
        if size >= _BYTES:
            yield _batch(groups, frames)
            groups, frames, size = [], [], 0
    if groups:
        yield _batch(groups, frames)


def _batch(groups: list[int], frames: list[bytes]) -> pa.RecordBatch:
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([pa.array(groups, pa.int32()), pa.array(frames, pa.binary())], names=["g", "f"])


def _context() -> Any:
    from pyspark import TaskContext

    return TaskContext.get()


def _partition() -> int:
    return int(_context().partitionId())


def _epoch() -> int:
    return int(_context().getLocalProperty("streaming.sql.batchId"))
