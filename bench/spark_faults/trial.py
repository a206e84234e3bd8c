"""One run on a standalone cluster under faults, over as many commands as it takes, and its counts against what they must be."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.faults.count import each_once, rows_up_to_now
from bench.kit.spark_cluster import SparkCluster
from bench.spark_faults.topology import EACH, END, KEYS

__all__ = ["KINDS", "Lost", "Trial"]

ROOT = Path(__file__).parents[2]
TOPOLOGY = Path(__file__).with_name("topology.py")
#: kind -> how often it is chosen
KINDS = {
    "the Pythons of an executor": 16,
    "an executor": 6,
    "all executors": 1,
    "a worker": 3,
    "the driver": 1,
    "the driver, then other tasks": 1,
}
#: behind these no other fault comes within the same epoch
_OF_DRIVER = ("the driver", "the driver, then other tasks")
#: how many faults come within an epoch at most, each into what the one before has made Spark do again
VOLLEY = 8
#: seconds until an epoch must be over
PATIENCE = 1800.0
#: a task, a stage or an application may fail as often as faults come
CONF = {
    "spark.task.maxFailures": "100",
    "spark.stage.maxConsecutiveAttempts": "100",
    "spark.executor.maxNumFailures": "10000",
    "spark.network.timeout": "600s",
}


class Lost(Exception):
    """The run does not go on."""


class Trial:
    """See the module. `folder` is seen by all hosts; `seed` decides all faults."""

    def __init__(self, cluster: SparkCluster, folder: Path, rate: float, seed: int) -> None:
        self.cluster, self.folder, self.rate = cluster, folder, rate
        self.order = random.Random(seed)
        self.process: subprocess.Popen[bytes] | None = None
        self.commands = self.failed = 0
        #: faults while a batch was being computed
        self.amid = 0
        #: kind -> seconds until the next epoch was over
        self.happened: dict[str, list[float]] = defaultdict(list)
        self._more: list[str] = []

    # the command -----------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the command, or have another one go on."""
        (self.folder / "tmp").mkdir(exist_ok=True)
        command = [
            *self.cluster.prefix,
            *(sys.executable, "-m", "esault", "run", f"{TOPOLOGY}:topology", "--engine", "spark", "--plain"),
            *("--master", self.cluster.master, "--checkpoint", "1", "--state", str(self.folder / "state")),
            *("--set", f"folder={self.folder}", "--set", f"rate={self.rate}"),
            *(f"--conf={name}={value}" for name, value in {**CONF, **self.cluster.conf}.items()),
            *(["--resume"] if self.commands else []),
            *self._more,
        ]
        self.commands += 1
        with (self.folder / "log.txt").open("ab") as log:
            environ = {
                **os.environ,
                "TMPDIR": str(self.folder / "tmp"),
                "PYTHONPATH": str(ROOT),
                "PYSPARK_PYTHON": "python3",  # each host's
            }
            self.process = subprocess.Popen(
                command, cwd=ROOT, env=environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def kill(self) -> None:
        """Kill -9 the command. Its JVM ends when it sees that."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def _log(self) -> str:
        return (self.folder / "log.txt").read_text(errors="replace")[-3000:]

    def done(self) -> int:
        """The newest epoch that is over."""
        try:
            return int((self.folder / "state" / "spark" / "epochs" / "done").read_text())
        except (FileNotFoundError, ValueError):
            return -1

    def computing(self) -> bool:
        """Return whether a batch is being computed: Spark has written where it ends, and the journal does not say that it is over."""
        state = self.folder / "state" / "spark"
        try:
            layout = json.loads((state / "layout.json").read_text())
            number = layout["generation"]
            log = state / (f"checkpoint-{number}" if number else "checkpoint") / "offsets"
            begun = max((int(p.name) for p in log.iterdir() if p.name.isdigit()), default=-1)
        except (OSError, ValueError):
            return False
        return bool(layout["first"] + begun > self.done())

    def _goes_on(self, end: float, what: str) -> None:
        """A command that ended by what was done to it is followed by another. Raises Lost."""
        assert self.process is not None
        if self.process.poll() is not None:
            self.failed += 1
            if self.failed > 20:
                raise Lost(f"the command ends again and again: {self._log()}")
            self.start()
        if time.monotonic() > end:
            raise Lost(f"{what} for {PATIENCE:.0f} s: {self._log()}")
        time.sleep(0.05)

    def until_after(self, epoch: int) -> int:
        """Wait until a later epoch is over. Raises Lost."""
        end = time.monotonic() + PATIENCE
        while (done := self.done()) <= epoch:
            self._goes_on(end, f"no epoch behind {epoch}")
        return done

    def _until_computing(self) -> None:
        end = time.monotonic() + PATIENCE
        while not self.computing():
            self._goes_on(end, "no batch")

    # faults ----------------------------------------------------------------------------------------

    def run(
        self,
        faults: int,
        kinds: list[str] | None = None,
        minutes: float = float("inf"),
        keep: Callable[[dict[str, Any]], None] = lambda found: None,
    ) -> dict[str, Any]:
        """So many faults, or these, and none after so many minutes; then the end. Raises Lost.

        They come within batches, up to VOLLEY into one, and then an epoch must end before the next. The command is killed within the first
        batch, before there is anything to go on from. `keep` is given the counts so far whenever such an epoch has ended.
        """
        begun, done = time.time(), 0
        self.start()
        last = self.until_after(-1) if kinds else -1
        seconds = 5.0  # that a batch takes
        found_none = time.monotonic()
        while done < faults and time.time() - begun < 60 * minutes:
            self._until_computing()
            at = time.monotonic()
            volley: list[str] = []
            for _ in range(1 if kinds else self.order.randint(1, VOLLEY)):
                time.sleep(self.order.uniform(0, seconds))
                names = list(KINDS)
                kind = self.order.choices(names, [KINDS[name] for name in names])[0]
                kind = kinds[done] if kinds else "the driver" if last < 0 else kind
                amid = self.computing()
                if self._do(kind):
                    done += 1
                    self.amid += amid
                    volley.append(kind)
                if done == faults or kind in _OF_DRIVER:
                    break
            if not volley:
                if time.monotonic() > found_none + PATIENCE:
                    raise Lost(f"no process for {kind!r} for {PATIENCE:.0f} s: {self._log()}")
                continue
            found_none = time.monotonic()
            last = self.until_after(max(last, self.done()))
            took = time.monotonic() - at
            for kind in volley:
                self.happened[kind].append(took)
            seconds = min(20.0, max(2.0, took / 4))
            print(f"  {done} of {faults}: {', '.join(volley)}: {took:.0f} s, epoch {last}", flush=True)
            keep(self._found(done, begun, over=False))
        # No more than that can have been read; what is missing up to there is read as fast as it goes.
        number = 2 * (int(self.rate * (time.time() - begun)) // 2 + 1000)
        (self.folder / END).write_text(str(number))
        self._until_drained()
        return {**self._found(done, begun, over=True), "numbers": number, **self._counted(number)}

    def _found(self, done: int, begun: float, over: bool) -> dict[str, Any]:
        """The counts so far. `over`: the sources have ended, so that state and rows can be compared with all that there must be."""
        return {
            "over": over,
            "faults": done,
            "commands": self.commands,
            "failed_commands": self.failed,
            "amid_batches": self.amid,
            "epochs": self.done() + 1,
            "seconds": time.time() - begun,
            **({} if over else rows_up_to_now(self.folder, EACH)),
            "by_kind": {kind: list(seconds) for kind, seconds in self.happened.items()},
        }

    def _do(self, kind: str) -> bool:
        """Have it happen; whether there was a process for it."""
        cluster, worker = self.cluster, self.order.choice(self.cluster.names)
        if kind == "the Pythons of an executor":
            return cluster.kill_pythons(worker)
        if kind == "an executor":
            return cluster.kill_executor(worker)
        if kind == "all executors":
            return sum(cluster.kill_executor(name) for name in cluster.names) > 0
        if kind == "a worker":
            cluster.kill_worker(worker)
            time.sleep(self.order.uniform(0, 3))
            cluster.start_worker(worker)
            return True
        self.kill()
        if kind == "the driver, then other tasks":
            self._more = ["--parallelism", f"count={self.order.randint(1, 4)}", "--parallelism", "spread=3"]
        self.start()
        return True

    def _counted(self, number: int) -> dict[str, int]:
        counts = each_once(self.folder, number, KEYS, EACH)
        return {"lost": counts.pop("tuples_lost"), "doubled": counts.pop("tuples_doubled_in_state"), **counts}

    def _until_drained(self) -> None:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            assert self.process is not None
            if self.process.poll() == 0:
                return
            if self.process.poll() is not None:
                self.failed += 1
                self.start()
            time.sleep(0.05)
        raise Lost(f"it does not end: {self._log()}")
