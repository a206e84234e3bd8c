"""The query: one chain of stages for the whole topology, and what the driver does with each batch."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from esault.background import BackgroundLoop
from esault.errors import EsaultError, SinkError
from esault.flow.operators.user_error import UserError
from esault.flow.send.recommit import commit_for_run, forget_staged
from esault.payload.codec import Codec
from esault.spark.engine.dead_letters import write_dead_letters
from esault.spark.engine.frames import COUNTS, DATA, DEAD, HANDLE, batches_of, in_order
from esault.spark.engine.job import Job
from esault.spark.engine.journal import Journal, Record
from esault.spark.engine.landing import Landing, sinks_remain, undivided
from esault.spark.engine.tally import Tally
from esault.spark.engine.timings import seconds_of, take_times
from esault.spark.engine.worker_error import WorkerError
from esault.spark.master import is_cluster
from esault.spark.settings import settings
from esault.spark.spark_path import SparkPlace
from esault.topology.plan import Plan, SinkPlan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["CONF", "Epochs", "conf_for", "start", "what_spark_said"]

#: what the query needs of its session
CONF = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    # what changed, not all there is, is written with each batch
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Spark and its Pythons wait for one another when they start; on a busy machine 15 s are few
    "spark.python.authenticate.socketTimeout": "60s",
    # a row is a frame of thousands of tuples
    "spark.sql.execution.arrow.maxRecordsPerBatch": "64",
    # the journal says of a batch that comes again that it is not to be computed again; its state is there
    "spark.sql.streaming.stateStore.commitValidation.enabled": "false",
    # a JVM that moves frames has little to optimise, and much to do when it starts; plans of chained levels are deep
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -Xss8m",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -Xss8m",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # results of stages must not depend on the load: partitions are ours
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}
#: cores up to which a Java on one machine collects garbage in one thread: what moves frames keeps little, and each thread more is one of theirs
_FEW_CORES = 4
#: where others may have said how Java collects: two ways are refused by it
_OPTIONS = ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
_FILES = "spark.sql.streaming.checkpointFileManagerClass"
_BY_FILE_SYSTEM = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"


def conf_for(url: str, cores: int, environ: Mapping[str, str]) -> dict[str, str]:
    """Return what the query needs of its session, on this master and with so many cores of this machine."""
    if is_cluster(url) or cores > _FEW_CORES or any("GC" in environ.get(name, "") for name in _OPTIONS):
        return CONF
    driver = "spark.driver.extraJavaOptions"
    return {**CONF, driver: f"{CONF[driver]} -XX:+UseSerialGC"}


def on_disk(spark: SparkSession) -> dict[str, str]:
    """Return the settings for a state in a folder: Spark's usual way to rename a file there starts four programs for each,
    a hundred for a batch of one level."""
    known = spark.sparkContext._jvm.org.apache.spark.util.Utils.classIsLoadable(_BY_FILE_SYSTEM)
    return {_FILES: _BY_FILE_SYSTEM} if known else {}


class Epochs:
    """Takes each batch to its end: handles into the journal, sinks committed, counts added."""

    def __init__(self, sinks: tuple[SinkPlan, ...], journal: Journal, tally: Tally, job: Job) -> None:
        self._job = job
        #: epochs of this life whose rows were collected
        self._has_collected: set[int] = set()
        self._plans = sinks
        self._sinks = {s.name: s.sink for s in sinks}
        self._journal = journal
        self._codec = Codec()
        self.background = BackgroundLoop()
        #: Spark calls in threads of its own; sinks may hold what belongs to one, such as a connection
        self._thread = ThreadPoolExecutor(1, "esault-sinks")
        self.tally = tally
        #: of this life
        self.committed = 0
        self.newest = -1
        self.last_seconds = 0.0
        #: told of each epoch how far parts have come with it, and of one that was computed now how long it took, and its workers
        self.on_commit: Callable[[Mapping[Any, Any], float | None, tuple[float, float] | None], None] = lambda *of: None
        #: the batch with the end is committed
        self.ended = threading.Event()
        #: why a batch failed; for people
        self.failure: str | None = None

    def in_thread(self, call: Callable[[], Any]) -> Any:
        """Return what a call of sinks returns: all are in one thread."""
        return self._thread.submit(call).result()

    def again(self, resumed: bool = True) -> None:
        """Before the query starts: what an earlier life has in the journal and not committed to its end."""
        newest = self._journal.newest()
        for epoch in range(self._journal.done + 1, newest + 1):
            record = self._journal.read(epoch)
            if record is not None:  # what it collected was an earlier caller's
                self._commit(epoch, record._replace(collected=()), None)
        last = self._journal.read(newest) if newest >= 0 else None
        if last is not None and last.ended:  # also where it is committed whole: no batch will say so
            self.ended.set()
        self._forget(last, resumed)

    def _forget(self, record: Record | None, back: bool = True) -> None:
        """Have sinks let go of what tasks staged and the journal does not have."""
        handles = () if record is None else record.handles
        for plan in self._plans:
            kept = tuple(handle for name, handle in handles if name == plan.name)
            self.in_thread(partial(forget_staged, plan, kept, self.background, back))

    def batch(self, frame: Any, number: int) -> None:
        """For `foreachBatch`. Raises what the batch failed with, and keeps its text."""
        try:
            self._batch(frame, self._job.first + number)
        except Exception as error:
            self.failure = self.failure or _text(error)
            raise

    def _batch(self, frame: Any, epoch: int) -> None:
        if epoch <= self._journal.done:
            return
        began = time.monotonic()
        record = self._journal.read(epoch)
        again = record is not None
        if record is None:
            record = self._computed([bytes(row[1]) for row in frame.collect()])
            self._journal.write(epoch, record)
            self.last_seconds = time.monotonic() - began
        self._commit(epoch, record, None if again else began)
        self._forget(record)

    def _computed(self, frames: list[bytes]) -> Record:
        handles: list[Any] = []
        counts: list[Any] = []
        ends: dict[Any, Any] = {}
        ended = False
        dead_letters: list[Any] = []
        data: list[Any] = []
        for row in frames:
            frame = self._codec.unpack(row)
            if frame[0] == HANDLE:
                handles.append((frame[1], self._codec.unpack(frame[2])))
            elif frame[0] == COUNTS:
                _, counted, read, over = frame
                counts.append(counted)
                for part, (rows, position) in read.items():
                    known = ends.get(part)
                    if known is None or known[0] < rows:
                        ends[part] = (rows, position)
                ended = ended or over
            elif frame[0] == DEAD:
                dead_letters.append(frame[1:])
            elif frame[0] == DATA:
                data.append(frame)
        packed = tuple(map(self._codec.pack, in_order(data)))
        return Record(tuple(handles), tuple(counts), ends, ended, tuple(dead_letters), packed)

    def _commit(self, epoch: int, record: Record, began: float | None) -> None:
        """`began`: when it began to be computed; None where that was another time."""
        handles, counts, ends, ended, dead_letters, _ = record
        self._collect(epoch, record)
        write_dead_letters(dead_letters, again=began is None)
        for name, sink in self._sinks.items():
            its = [(epoch, handle) for of, handle in handles if of == name]
            try:
                self.in_thread(partial(commit_for_run, name, sink, its, self.background))
            except UserError as error:
                raise SinkError(str(error)) from error
        self._journal.finish(epoch)
        for counted in counts:
            self.tally.add(counted)
        left = list(take_times(self._job.shared))
        for times in left:
            self.tally.add_times(times)
        self.tally.epochs += 1
        self.committed += 1
        self.newest = epoch
        self.on_commit(ends, None if began is None else time.monotonic() - began, seconds_of(left))
        if ended:
            self.ended.set()

    def _collect(self, epoch: int, record: Record) -> None:
        """Give rows to the sinks that collect, here where their caller is."""
        if not record.collected or epoch in self._has_collected:
            return
        self._has_collected.add(epoch)
        landing = Landing(self._job, 0, self._sinks)
        for packed in record.collected:
            frame = self._codec.unpack(packed)
            self.in_thread(partial(landing.write, frame[4], batches_of(self._codec, frame[5])))
        for name, handle in self.in_thread(lambda: list(landing.prepare(epoch))):
            self.in_thread(partial(commit_for_run, name, self._sinks[name], [(epoch, handle)], self.background))


def start(spark: SparkSession, job: Job, plan: Plan, folder: Path, checkpoint: SparkPlace, epochs: Epochs) -> Any:
    """Start the query: a batch begins as soon as there is a newer offset, and none is computed."""
    from esault.spark.engine.processor import Level
    from esault.spark.engine.source import SCHEMA, stream
    from esault.spark.engine.stages import sink_stage

    layout = job.layout
    workers = max(layout.partitions, spark.sparkContext.defaultParallelism)
    rows = stream(spark, job, folder, workers, undivided(plan, layout))
    for units in layout.levels:
        rows = rows.groupBy("g").transformWithState(Level(job, units), SCHEMA, "append", "none")
    if sinks_remain(plan, layout):
        rows = rows.mapInArrow(sink_stage(job), SCHEMA)
    writer = rows.writeStream.foreachBatch(epochs.batch).outputMode("append")
    writer = writer.option("checkpointLocation", checkpoint.resolve().as_uri()).queryName(f"esault {job.run}")
    return writer.start()


def settled(spark: SparkSession, conf: Mapping[str, str]) -> contextlib.AbstractContextManager[None]:
    """Return the session's settings for the time of a block."""
    settable = {name: value for name, value in conf.items() if name.startswith("spark.sql.")}
    settable["spark.sql.shuffle.partitions"] = spark.conf.get("spark.sql.shuffle.partitions")  # set per run
    return settings(spark, settable)


_MARKED = re.compile(re.escape(WorkerError.BEGIN) + r"(.*?)" + re.escape(WorkerError.END), re.S)


def what_spark_said(text: str) -> str | None:
    """The text of a WorkerError in what Spark says of a failure; None where there is none."""
    found = _MARKED.search(text)
    return found[1] if found else None


def _text(error: Exception) -> str:
    text = str(error)
    said = what_spark_said(text)
    if said is not None:
        return said
    if isinstance(error, EsaultError):
        return text
    from pyspark.errors import PySparkException

    return f"Spark: {text}" if isinstance(error, PySparkException) else f"{type(error).__name__}: {text}"
