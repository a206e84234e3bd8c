"""One run of the live migration experiment on nodes that are up, and what the copies wrote down."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.kit.cluster import Cluster
from bench.kit.measure import ROOT
from bench.policies.migration.live.topology import GO, KEYS, RECORD, due_times, service
from bench.policies.migration.model import ROUND, Figures, p99
from bench.policies.migration.scenarios import Scenario

__all__ = ["Shape", "live"]

#: seconds beyond the load's own after which a run hangs
LONGEST = 150.0
#: reports of a copy in a round; ten in the dissertation, whose rounds are longer
REPORTS = 6

#: of a copy: (event, due, done) in the order in which they were done
Done = list[tuple[int, float, float]]


@dataclass(frozen=True)
class Shape:
    """The size of the experiment."""

    #: times are divided by this
    speed: float = 10.0
    #: rates are the dissertation's times this
    scale: float = 0.05
    workers: int = 13
    #: of the schedule
    minutes: float = 10.0

    @property
    def seconds(self) -> float:
        """That the load takes."""
        return self.minutes * 60 / self.speed


def live(cluster: Cluster, folder: Path, scenario: Scenario, shape: Shape, seed: int = 0) -> dict[str, Any]:
    """One run in a folder of its own. Raises RuntimeError where it fails or an event was lost, or counted twice."""
    folder.mkdir()
    round_ = ROUND / shape.speed
    parameters: dict[str, object] = {
        "period": round_ / REPORTS,
        "go": folder / GO,
        "service": service(shape.scale),
    }
    if scenario.policy != "none":
        parameters |= {"round": round_, "limit": scenario.limit}
    if scenario.policy == "migration":
        parameters["d"] = scenario.d
    if scenario.policy == "random":
        parameters["seed"] = seed
    spec = f"live_{scenario.policy}:" + ",".join(f"{k}={v}" for k, v in parameters.items())
    sets = {"folder": folder, **asdict(shape)}
    command = [*cluster.prefix, sys.executable, "-m", "esault", "run"]
    command += ["bench.policies.migration.live.topology:topology", "--plain", "--policy", spec]
    command += ["--hosts", str(cluster.folder / "hosts.toml"), "--report", str(folder / "report.json")]
    command += [f"--set={k}={v}" for k, v in sets.items()]
    before = os.getloadavg()[0]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=LONGEST + shape.seconds, check=False
    )
    if done.returncode:
        raise RuntimeError(f"the run under {spec} failed:\n{done.stderr.strip()[-3000:]}")
    report = json.loads((folder / "report.json").read_text())
    copies = _copies(folder)
    _check(folder, copies, shape)
    start = float((folder / GO).read_text())
    moves = [c for c in report["changes"] if c["kind"] == "move" and c["reason"] != "the first placement"]
    figures = _figures(copies, start + shape.seconds, len(moves))
    return {
        **figures._asdict(),
        "placed": sum(c["kind"] == "move" for c in report["changes"]) - len(moves),
        "move_ms": [c["total_ms"] for c in moves],
        "refused": [d["outcome"] for d in report["decisions"] if d["outcome"].startswith(("refused", "failed"))],
        "offered": sum(len(copy) for (_, k), copy in copies.items() if k == 0),
        "replayed": report["roots"]["replayed"],
        "deaths": report["deaths"],
        "load_average": [before, os.getloadavg()[0]],
    }


def _copies(folder: Path) -> dict[tuple[int, int], Done]:
    """(worker, copy) -> what it has processed, on all hosts where it was."""
    found: dict[tuple[int, int], Done] = defaultdict(list)
    for path in folder.glob("worker-*.done"):
        unit, _, copy = path.name.split(".")[0].partition("~")
        found[int(unit.rpartition("-")[2]), int(copy or 0)] += RECORD.iter_unpack(path.read_bytes())
    for done in found.values():
        done.sort(key=lambda event: event[2])
    return dict(found)


def _check(folder: Path, copies: Mapping[tuple[int, int], Done], shape: Shape) -> None:
    """Each copy had each event once, wherever it was; and so say the states that went along."""
    for worker in range(1, shape.workers + 1):
        n = len(due_times(worker, shape.speed, shape.scale, shape.minutes))
        for copy in (0, 1):
            numbers = sorted(event for event, _, _ in copies.get((worker, copy), []))
            if numbers != list(range(n)):
                raise RuntimeError(
                    f"copy {copy} of worker {worker} processed {len(numbers)} events, {len(set(numbers))} of them different, of {n}"
                )
        rows = map(json.loads, (folder / f"sums-{worker}.jsonl").read_text().splitlines())
        sums = {row["key"]: tuple(row["value"]) for row in rows}
        wanted = {key: (len(range(key, n, KEYS)), sum(range(key, n, KEYS))) for key in range(min(KEYS, n))}
        if sums != wanted:
            raise RuntimeError(f"worker {worker} put out other sums than those of its {n} events")


def _figures(copies: Mapping[tuple[int, int], Done], end: float, migrations: int) -> Figures:
    """As of the model; events are those that were done by `end`."""

    def latencies(*which: tuple[int, int]) -> list[float]:
        return [1e3 * (done - due) for each in which for _, due, done in copies[each]]

    def mean(values: Sequence[float]) -> float:
        return sum(values) / len(values)

    workers = sorted({worker for worker, _ in copies})
    ordered = [sorted(((w, 0), (w, 1)), key=lambda each: mean(latencies(each))) for w in workers]
    fast, slow = latencies(*(a for a, _ in ordered)), latencies(*(b for _, b in ordered))
    events = sum(max(sum(done <= end for _, _, done in copies[w, k]) for k in (0, 1)) for w in workers)
    return Figures(mean(fast), p99(fast), mean(slow), p99(slow), float(events), migrations)
