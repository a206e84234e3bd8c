"""The chain of stages without Spark: the same functions over lists, state in dicts."""

from __future__ import annotations

import itertools
import json
import time
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

from esault.payload.codec import Codec
from esault.spark.engine import reader, stages, task
from esault.spark.engine.adapted import adapted
from esault.spark.engine.job import Job
from esault.spark.engine.journal import Journal
from esault.spark.engine.landing import undivided
from esault.spark.engine.layout import lay_out, partition_of
from esault.spark.engine.offsets import publish, start
from esault.spark.engine.query import Epochs
from esault.spark.engine.reading import Reading
from esault.spark.engine.refusals import check_topology
from esault.spark.engine.seeds import write_seed
from esault.spark.engine.source import handed
from esault.spark.engine.tally import Tally
from esault.topology.locate import locate
from esault.topology.sink import RunInfo

_RUNS = itertools.count(1)


class Kept:
    """A store; can go back."""

    def __init__(self) -> None:
        self.value: Any = None
        self.list: list[bytes] = []
        self.puts = 0

    def head(self) -> Any:
        return self.value

    def set_head(self, head: Any) -> None:
        assert [type(item) for item in head] == [str, int, int, int, int, bool, bytes]
        self.value = head

    def pieces(self) -> Any:
        return iter(list(self.list))

    def put(self, pieces: list[bytes]) -> None:
        self.list = list(pieces)
        self.puts += 1

    def append(self, pieces: list[bytes]) -> None:
        self.list = [*self.list, *pieces]

    def copy(self) -> Kept:
        other = Kept()
        other.value, other.list = self.value, list(self.list)
        return other


class _Rows:
    def __init__(self, rows: list[tuple[int, bytes]]) -> None:
        self._rows = rows

    def collect(self) -> list[tuple[int, bytes]]:
        return self._rows


class Chain:
    """A run, batch by batch."""

    def __init__(
        self, place: str, folder: Path, params: dict[str, Any] | None = None, cores: int = 2, **chosen: int
    ) -> None:
        self.located = locate(place)
        self.plan = adapted(self.located.build(params or {}))
        check_topology(self.plan)
        self.folder = folder
        self.run = f"chain-{next(_RUNS)}"
        (folder / "state").mkdir(parents=True, exist_ok=True)
        layout = lay_out(self.plan, chosen, cores)
        self.job = Job(
            located=self.located,
            params=params or {},
            run=self.run,
            layout=layout,
            run_dir=str(folder),
            shared=str(folder / "state"),
        )
        self.tally = Tally(self.plan.units)
        self.epochs = Epochs(self.plan.sinks, Journal(folder / "state" / "epochs"), self.tally, self.job)
        self.offset = start(dict(layout.parts))
        publish(folder, self.offset, first=True)
        self.reading = Reading(
            plan=self.plan,
            plans=self.job.fresh_plan,
            run=self.run,
            run_dir=str(folder),
            folder=folder,
            state=folder / "state",
            offset=self.offset,
        )
        self.epochs.on_commit = self.reading.processed
        self.stores: dict[tuple[str, int], Kept] = defaultdict(Kept)
        self.epoch = 0
        #: rows that passed each shuffle of the batch that was computed last, as a bag
        self.shuffled: list[Counter[tuple[int, bytes]]] = []
        for sink in self.plan.sinks:
            sink.sink.check()
            sink.sink.begin(RunInfo(self.run, self.plan.name, sink.name))
        for part, context in zip(self.reading.parts, self.reading._contexts):
            part.open(context)

    def forget_workers(self) -> None:
        """The next batch runs in new workers."""
        for _, each in task._HERE.values():
            each.runners.let_go()
        for runners in stages._SPOUTS.values():
            runners.let_go()
        for _, spout, _ in reader._HERE.values():
            spout.close()
        task._HERE.clear()
        reader._HERE.clear()
        stages._SPOUTS.clear()

    def rescale(self, cores: int = 2, **chosen: int) -> None:
        """The run goes on with other tasks, in new workers: as one that was resumed so."""
        self.forget_workers()
        before, number = self.job.layout, self.reading._generation + 1
        folder = self.folder / f"seeds-{number}"
        folder.mkdir()
        for (unit, at), store in self.stores.items():
            if store.value is not None:
                write_seed(folder, unit, at, store.value[4], store.value[6], store.list)
        layout = lay_out(self.plan, {**before.parts, **chosen}, cores)
        self.job = replace(
            self.job, run=f"chain-{next(_RUNS)}", layout=layout, seeds=dict(before.tasks), seed_dir=str(folder)
        )
        self.stores = defaultdict(Kept)
        self.reading._generation = number

    def compute(self, start: Any, end: Any) -> list[tuple[int, bytes]]:
        """The rows that come out of the chain between two offsets."""
        codec, layout = Codec(), self.job.layout
        whole = undivided(self.plan, layout)
        hands = handed(json.loads(json.dumps(start)), json.loads(json.dumps(end)), layout.partitions, whole)
        frames = [list(map(codec.pack, hand)) for hand in hands]
        rows = [row for i, part in enumerate(frames) for row in stages.read(self.job, i, part)]
        self.shuffled = []
        for units in layout.levels:
            self.shuffled.append(Counter(rows))
            groups: dict[int, list[bytes]] = defaultdict(list)
            passed = []
            for group, frame in reversed(rows):  # Spark promises no order
                task_of = layout.tasks_by_group.get(group)
                if task_of is not None and task_of[0] in units:
                    groups[group].append(frame)
                else:
                    passed.append((group, frame))
            rows = passed
            for group, frames_of in groups.items():
                unit, number = layout.tasks_by_group[group]
                partition = partition_of(group, layout.partitions)
                store = self.stores[unit, number]
                rows += list(task.run_task(self.job, unit, number, partition, self.epoch, frames_of, store))
        by_partition: dict[int, list[bytes]] = defaultdict(list)
        for group, frame in rows:
            by_partition[partition_of(group, layout.partitions)].append(frame)
        return [
            row
            for place, part in sorted(by_partition.items(), reverse=True)  # nor here: tasks write side by side
            for row in stages.land(self.job, place, self.epoch, part)
        ]

    def batch(self, reads: int = 3, now: float | None = None) -> bool:
        """Read, and process what was read; whether there was anything."""
        for _ in range(reads):
            self.reading.step(time.time() if now is None else now)
        end = json.loads(json.dumps(self.reading._offset))
        if end == self.offset:
            return False
        self.epochs.batch(_Rows(self.compute(self.offset, end)), self.epoch)
        self.epoch += 1
        self.offset = end
        return True

    def drain(self) -> None:
        """To the end."""
        for _ in range(10_000):
            self.batch()
            if self.epochs.ended.is_set():
                break
        assert self.epochs.ended.is_set()
        for sink in self.plan.sinks:
            sink.sink.repeated = False
            sink.sink.end(True)
        self.reading._close()
        self.forget_workers()
