"""The same load in Bytewax with its recovery store; prints one line of JSON.

python -m bench.rescale.bytewax_flow full|rescale --folder DIR --keys N [--rate R] [--seconds S]

full: as fast as it goes, for S seconds, one worker. rescale: one worker for S seconds; its source ends, and with it the run, with
all state in the store; then two workers go on from there.
"""

from __future__ import annotations

import argparse
import array
import json
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.recovery import RecoveryConfig, init_db_dir
from bytewax.testing import cluster_main

from bench.rescale.run import TAIL, start
from bench.rescale.topology import NOTE, SHIFT, Schedule

__all__ = ["run"]

#: rows that the source offers at a time, as in bench/peers/bytewax_flows.py
BATCH = 128


class _Part(StatefulSourcePartition[Any, int]):
    def __init__(self, schedule: Schedule, stop_after: float, position: int | None) -> None:
        self.schedule, self.stop_after = schedule, stop_after
        if position is not None:
            schedule.next = position

    def next_batch(self) -> list[Any]:
        now = time.time()
        schedule = self.schedule
        if schedule.start and now >= schedule.start + self.stop_after:
            raise StopIteration
        rows = schedule.take(BATCH, now)
        if rows is None:
            raise StopIteration
        return rows

    def next_awake(self) -> datetime | None:
        # Without it the source is asked again after a millisecond when it had nothing.
        schedule = self.schedule
        if not (schedule.start and schedule.rate):
            return None
        due = schedule.due()
        return datetime.fromtimestamp(due, timezone.utc) if due > time.time() else None

    def snapshot(self) -> int:
        return self.schedule.next

    def close(self) -> None:
        self.schedule.save()


class _Source(FixedPartitionedSource[Any, int]):
    def __init__(self, schedule: Schedule, stop_after: float) -> None:
        self.schedule, self.stop_after = schedule, stop_after

    def list_parts(self) -> list[str]:
        return ["all"]

    def build_part(self, step_id: str, for_part: str, resume_state: int | None) -> _Part:
        return _Part(self.schedule, self.stop_after, resume_state)


class _Record(StatelessSinkPartition[Any]):
    def __init__(self, path: Path) -> None:
        self.stamps = path.with_suffix(".stamps").open("ab", buffering=1 << 16)
        self.rows = path.with_suffix(".rows").open("ab", buffering=1 << 18)

    def write_batch(self, items: list[Any]) -> None:
        self.stamps.write(array.array("d", (time.time(), len(items))))
        self.rows.write(array.array("Q", [value for _, value in items]))

    def close(self) -> None:
        self.stamps.close()
        self.rows.close()


class _Sink(DynamicSink[Any]):
    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name

    def build(self, step_id: str, worker_index: int, worker_count: int) -> _Record:
        return _Record(self.folder / f"{self.name}-{worker_index}")


def running(state: tuple[int, bytes] | None, index: int) -> tuple[tuple[int, bytes], int]:
    """As `Running` in bench/rescale/topology.py."""
    n, note = (0, bytes(NOTE)) if state is None else state
    return (n + 1, note), index << SHIFT | n + 1


def _run(name: str, schedule: Schedule, folder: Path, stop_after: float, workers: int) -> None:
    flow = Dataflow("bench")
    rows = op.input("in", flow, _Source(schedule, stop_after))
    op.output("out", op.stateful_map("count", rows, running), _Sink(folder, name))
    # States that changed are written at the end of an epoch, 10 s if nothing is said, during which nothing comes out.
    cluster_main(flow, [], 0, recovery_config=RecoveryConfig(folder / "store"), worker_count_per_proc=workers)


def run() -> None:
    """Run as the arguments say."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["full", "rescale"])
    parser.add_argument("--folder", required=True)
    parser.add_argument("--keys", type=int, required=True)
    parser.add_argument("--rate", type=float, default=0.0)
    parser.add_argument("--seconds", type=float, default=3.0)
    arguments = parser.parse_args()
    folder = Path(arguments.folder)
    (folder / "store").mkdir()
    init_db_dir(folder / "store", 2)

    def schedule(seconds: float) -> Schedule:
        return Schedule(arguments.keys, arguments.rate, seconds, arguments.folder)

    seconds = arguments.seconds
    if arguments.what == "full":
        _run("a", schedule(seconds), folder, seconds, 1)
        print(json.dumps({}))
        return
    _run("a", schedule(1e9), folder, seconds, 1)
    stopped = time.time()
    began = start(folder)
    _run("b", schedule(seconds + TAIL), folder, 1e9, 2)
    print(json.dumps({"asked": [began + seconds], "stopped": stopped}))


if __name__ == "__main__":
    run()
