"""One of the topologies on actors or on Spark, in a process of its own; prints one line of JSON.

python -m bench.engines.run FOLDER [--tuples N] [--rate R] [--engine actors|spark] [--check RIGHT]

FOLDER has the data, made by bench.engines.data. With --check the topology runs just as its file has it, sinks too, and what it
landed is compared with what is pickled in the file RIGHT. With --rate, latencies are those of what was due in the second half. On Spark
"pace" says what the tuples behind the first commits took.
"""

from __future__ import annotations

import argparse
import json
import pickle
import tempfile
import time
from pathlib import Path

from bench.engines.answers import difference, landed
from bench.engines.data import Data, file_of
from bench.kit.steady_latency import percentiles, since
from bench.kit.topology_run import Commits, figures, run_topology
from esault.topology.locate import locate

__all__ = ["run"]


def run() -> None:
    """Run as the arguments say."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tuples", type=int, default=0, help="of all spouts; 0: all there are")
    parser.add_argument(
        "--rate", type=float, default=0.0, help="tuples a second, open loop; 0: as fast as they are taken"
    )
    parser.add_argument("--engine", default="actors", choices=["actors", "spark"])
    parser.add_argument("--check", type=Path, help="compare every final row; no run to take times from")
    arguments = parser.parse_args()
    data = Data.read(arguments.folder)
    started = time.time()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        if arguments.check:
            place, params = locate(f"{file_of(data.name)}"), data.params(out)
        else:
            place = locate(f"{Path(__file__).with_name('topologies.py')}:measured")
            params = {
                "folder": str(arguments.folder),
                "out": str(out),
                "tuples": arguments.tuples,
                "rate": arguments.rate,
            }
        commits = Commits(data.spouts)
        report = run_topology(place, params, arguments.engine, step=commits if arguments.engine == "spark" else None)
        checked, wrong = 0, None
        if arguments.check:
            checked, wrong = difference(pickle.loads(arguments.check.read_bytes()), landed(data.name, out))
        result = figures(report, data.spouts, started, Path(folder) / "none" if arguments.check else out)
        if arguments.engine == "spark":
            result["pace"] = commits.pace()
        if arguments.rate:
            result["latency_ms"] = _steady(out, result["begun"], (arguments.tuples or data.tuples) / arguments.rate)
    print(json.dumps({**result, "checked": checked, "wrong": wrong}))


def _steady(out: Path, begun: float, seconds: float) -> dict[str, float | None]:
    """p50 and p99 of what was due in the second half of a run of so many seconds: Spark warms up in the first."""
    return dict(zip(("p50", "p99"), percentiles(since(out, begun + seconds / 2), (0.5, 0.99))))


if __name__ == "__main__":
    run()
