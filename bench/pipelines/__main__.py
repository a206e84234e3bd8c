"""The same tables however often `esault analyze` is killed? And its time beside plain PySpark that does the same?

python -m bench.pipelines --out DIR [--quick] [--only kills|cluster|speed] [--runs N] [--minutes N] [--seed N]

kills: N kills -9 at random moments of commands on this machine; cluster: the same with `--master` of a standalone cluster, in network
namespaces where those can be made, and of executors and workers, behind which the command must come to its end; speed: N runs of each over 1 GB that has landed, in turns. Kills that are in DIR already count,
too, and so does its speed where that is not asked for: a hundred kills take hours.
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.kit.arguments import names_among, parse
from bench.kit.machine import facts
from bench.kit.result import Bar, runs_before, write
from bench.kit.spark_cluster import SparkCluster
from bench.pipelines.speed import RATIO, Speed
from bench.pipelines.trial import Lost, Trial
from bench.workloads.loads import SEED

__all__ = ["main"]

PARTS = ("kills", "cluster", "speed")
KILLS, CLUSTER_KILLS, TIMES = 100, 30, 3
#: rows of a landing at most
ROWS = 2000
#: a JVM that lives for seconds is not worth the best compiler
YOUNG = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", metavar="PARTS", type=names_among(PARTS), help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="no kills after so many, of each part")
    parser.add_argument("--seed", type=int, default=SEED)


def _kills(folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    trial = Trial(folder, arguments.seed, ROWS, options=["--master", "local[1]"], environ=YOUNG)
    return _killed(trial, arguments.runs or (3 if arguments.quick else KILLS), arguments.minutes)


def _cluster(folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    with SparkCluster(folder / "cluster") as cluster:
        (folder / "tmp").mkdir()
        # a task may fail as often as the docs say for clusters whose hosts come and go
        said = {**cluster.conf, "spark.task.maxFailures": "20"}
        conf = [f"--conf={name}={value}" for name, value in said.items()]
        environ = {"PYSPARK_PYTHON": "python3", "TMPDIR": str(folder / "tmp"), **YOUNG}
        options = ["--master", cluster.master, *conf]
        trial = Trial(folder, arguments.seed, ROWS, cluster.prefix, options, environ, _helpers(cluster))
        return _killed(trial, arguments.runs or (3 if arguments.quick else CLUSTER_KILLS), arguments.minutes)


def _helpers(cluster: SparkCluster) -> dict[str, Callable[[random.Random], bool]]:
    """By kind, what is killed -9 on a cluster beside the command."""

    def worker(order: random.Random) -> bool:
        name = order.choice(cluster.names)
        cluster.kill_worker(name)
        time.sleep(order.uniform(0, 3))
        cluster.start_worker(name)
        return True

    return {"an executor": lambda order: cluster.kill_executor(order.choice(cluster.names)), "a worker": worker}


def _killed(trial: Trial, kills: int, minutes: float) -> dict[str, Any]:
    try:
        return trial.run(kills, minutes)
    except Lost as error:
        raise SystemExit(f"lost after {trial.kills.total()} kills: {error}") from None
    finally:
        trial.stop()


def _said(where: str, runs: list[dict[str, Any]]) -> list[str]:
    """Lines for all runs together."""

    def total(name: str) -> int:
        return sum(run[name] for run in runs)

    def counted(name: str) -> dict[str, int]:
        counts: Counter[str] = Counter()
        for run in runs:
            counts.update(run[name])
        return dict(counts)

    return [
        f"{where}: {total('kills')} kills ({', '.join(f'{kind} {n}' for kind, n in counted('by_kind').items())}) in "
        f"{total('seconds') / 60:.0f} minutes; {total('commands')} commands, {total('ended')} of which came to their end; "
        f"{total('landings')} landings of {sum(counted('rows').values()):,} rows",
        f"  killed behind: {', '.join(f'{said} {n}' for said, n in sorted(counted('by_moment').items()))}",
        f"  rows that are wrong: {', '.join(f'{name} {n}' for name, n in counted('wrong').items())}",
    ]


def main() -> None:
    """The bench."""
    arguments = parse(__doc__, _options)
    parts = arguments.only or PARTS
    result: dict[str, Any] = {"bench": "pipelines", "machine": facts()}
    lines: list[str] = []
    panels: dict[str, list[Bar]] = {}
    bad = []
    # not below /tmp, of which each host of a cluster has its own
    folder = Path(tempfile.mkdtemp(prefix="esault-pipelines-", dir="/var/tmp"))
    for part, run, where in (("kills", _kills, "on this machine"), ("cluster", _cluster, "on a standalone cluster")):
        asked = part in parts
        result[part] = runs = runs_before(arguments.out, part, arguments.seed if asked else -1)
        if asked:
            (folder / part).mkdir()
            found = {"machine": result["machine"], "seed": arguments.seed, **run(folder / part, arguments)}
            runs.append(found)
            bad += [f"{name} ({where})" for name, n in found["wrong"].items() if n]
        if runs:
            lines += _said(where, runs)
            moments: Counter[str] = Counter()
            for each in runs:
                moments.update(each["by_moment"])
            panels[f"kills {where}"] = [Bar(name, n, n, n) for name, n in sorted(moments.items())]
    result["speed"] = times = runs_before(arguments.out, "speed", -1)
    if "speed" in parts:
        (folder / "speed").mkdir()
        speed = Speed(folder / "speed", 0.02 if arguments.quick else arguments.scale)
        found = speed.run(arguments.runs or (1 if arguments.quick else TIMES))
        times[:] = [{"machine": result["machine"], "seed": arguments.seed, **found}]
    for found in times:
        lines += Speed.lines(found)
        panels["seconds, 1 GB"] = Speed.bars(found)
        if found["ratio"] > RATIO:
            lines.append(f"more than {RATIO} times plain PySpark")
    write(arguments.out, result, lines, panels, "")
    if bad:
        raise SystemExit(f"other rows than a plain loop has: {', '.join(bad)}; they are in {folder}")
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
