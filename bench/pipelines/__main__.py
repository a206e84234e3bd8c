"""The same tables however often `esault analyze` is killed? And its time beside plain PySpark that does the same?

python -m bench.pipelines --out DIR [--quick] [--only kills|cluster|speed] [--runs N] [--minutes N] [--seed N]

kills: N kills -9 at random moments of commands on this machine; cluster: the same with `--master` of a standalone cluster, in network
namespaces where those can be made, and of executors and workers, behind which the command must come to its end; speed: N runs of each over 1 GB that has landed, in turns. Kills that are in DIR already count,
too, and so does its speed where that is not asked for: a hundred kills take hours. They are written behind each one, so that a bench that is
stopped loses none.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bench.kit.arguments import names_among, parse
from bench.kit.machine import facts
from bench.kit.result import Bar, runs_before, save, write
from bench.kit.spark_cluster import SparkCluster
from bench.pipelines.clustered import YOUNG, trial_on
from bench.pipelines.speed import RATIO, Speed
from bench.pipelines.trial import Lost, Trial
from bench.workloads.loads import SEED

__all__ = ["main"]

PARTS = ("kills", "cluster", "speed")
#: parts that kill -> where
WHERE = {"kills": "on this machine", "cluster": "on a standalone cluster"}
KILLS, CLUSTER_KILLS, TIMES = 100, 30, 3
#: rows of a landing at most
ROWS = 2000
#: is given the counts so far
Keep = Callable[[dict[str, Any]], None]


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", metavar="PARTS", type=names_among(PARTS), help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="no kills after so many, of each part")
    parser.add_argument("--seed", type=int, default=SEED)


def _kills(folder: Path, arguments: argparse.Namespace, keep: Keep) -> dict[str, Any]:
    trial = Trial(folder, arguments.seed, ROWS, options=["--master", "local[1]"], environ=YOUNG)
    return _killed(trial, arguments.runs or (3 if arguments.quick else KILLS), arguments.minutes, keep)


def _cluster(folder: Path, arguments: argparse.Namespace, keep: Keep) -> dict[str, Any]:
    with SparkCluster(folder / "cluster") as cluster:
        trial = trial_on(cluster, folder, arguments.seed, ROWS)
        return _killed(trial, arguments.runs or (3 if arguments.quick else CLUSTER_KILLS), arguments.minutes, keep)


def _killed(trial: Trial, kills: int, minutes: float, keep: Keep) -> dict[str, Any]:
    try:
        return trial.run(kills, minutes, keep)
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

    stopped = sum(not run.get("over", True) for run in runs)
    said = (
        f"  {stopped} of {len(runs)} runs stopped early: what came behind the last command that ended is not compared"
    )
    return [
        f"{where}: {total('kills')} kills ({', '.join(f'{kind} {n}' for kind, n in counted('by_kind').items())}) in "
        f"{total('seconds') / 60:.0f} minutes; {total('commands')} commands, {total('ended')} of which came to their end; "
        f"{total('landings')} landings of {sum(counted('rows').values()):,} rows",
        f"  killed behind: {', '.join(f'{said} {n}' for said, n in sorted(counted('by_moment').items()))}",
        f"  rows that are wrong: {', '.join(f'{name} {n}' for name, n in counted('wrong').items())}",
        *([said] if stopped else []),
    ]


def _lines(result: Mapping[str, Any]) -> list[str]:
    """All that is said of a result."""
    lines = [line for part, where in WHERE.items() if result[part] for line in _said(where, result[part])]
    for found in result["speed"]:
        lines += Speed.lines(found)
        if found["ratio"] > RATIO:
            lines.append(f"more than {RATIO} times plain PySpark")
    return lines


def _panels(result: Mapping[str, Any]) -> dict[str, list[Bar]]:
    panels: dict[str, list[Bar]] = {}
    for part, where in WHERE.items():
        moments: Counter[str] = Counter()
        for run in result[part]:
            moments.update(run["by_moment"])
        if result[part]:
            panels[f"kills {where}"] = [Bar(name, n, n, n) for name, n in sorted(moments.items())]
    for found in result["speed"]:
        panels["seconds, 1 GB"] = Speed.bars(found)
    return panels


def _keeper(out: str, result: dict[str, Any], part: str, seed: int) -> Keep:
    """Return what writes the counts so far of this part beside all that is known."""
    before = result[part]

    def keep(counts: dict[str, Any]) -> None:
        result[part] = [*before, {"machine": result["machine"], "seed": seed, **counts}]
        save(out, result, _lines(result))

    return keep


def main() -> None:
    """The bench."""
    arguments = parse(__doc__, _options)
    parts = arguments.only or PARTS
    result: dict[str, Any] = {"bench": "pipelines", "machine": facts()}
    for part in PARTS:
        new = part in WHERE and part in parts
        result[part] = runs_before(arguments.out, part, arguments.seed if new else -1)
    bad = []
    # not below /tmp, of which each host of a cluster has its own
    folder = Path(tempfile.mkdtemp(prefix="esault-pipelines-", dir="/var/tmp"))
    for part, run in (("kills", _kills), ("cluster", _cluster)):
        if part in parts:
            (folder / part).mkdir()
            keep = _keeper(arguments.out, result, part, arguments.seed)
            found = run(folder / part, arguments, keep)
            keep(found)
            bad += [f"{name} ({WHERE[part]})" for name, n in found["wrong"].items() if n]
    if "speed" in parts:
        (folder / "speed").mkdir()
        speed = Speed(folder / "speed", 0.02 if arguments.quick else arguments.scale)
        found = speed.run(arguments.runs or (1 if arguments.quick else TIMES))
        result["speed"] = [{"machine": result["machine"], "seed": arguments.seed, **found}]
    write(arguments.out, result, _lines(result), _panels(result), "")
    if bad:
        raise SystemExit(f"other rows than a plain loop has: {', '.join(bad)}; they are in {folder}")
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
