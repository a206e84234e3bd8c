"""One run of workload A on actors under a policy of the garbage collector; prints one line of JSON.

python -m bench.hops.collector_run LOAD PASSES POLICY

In each process collections and processor time are counted from when its loop begins until it is told to stop.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.hops.collector import POLICIES, Collections, in_place_of_the_engine
from bench.kit.quiet_view import QuietView
from bench.workloads.topologies import Count, Counted, Offered, Split
from esault import Topology, by_key, shuffle
from esault.runtime.session.request import Request
from esault.runtime.session.session import Session
from esault.topology.locate import locate

__all__ = ["run", "watched"]


class _Watch:
    """Counts in one process, and writes what it counted to a file of its own."""

    def __init__(self, folder: str, policy: str) -> None:
        self._folder, self._policy = Path(folder), policy
        self._collections = Collections()
        self._settled = False

    def begin(self) -> None:
        in_place_of_the_engine(self._policy, self._settle)

    def _settle(self) -> None:
        self._collections.__enter__()
        self._cpu = time.process_time()
        self._settled = True

    def end(self, unit: str) -> None:
        if not self._settled:
            raise RuntimeError("the data loop has not set the collector's policy, so no other one held in its place")
        self._collections.__exit__()
        counted = {
            "collections": self._collections.counts,
            "collecting_seconds": self._collections.nanoseconds / 1e9,
            "cpu_seconds": time.process_time() - self._cpu,
        }
        (self._folder / f"{unit}.watched").write_text(json.dumps(counted))


class _Offered(Offered):
    def __init__(self, load: str, passes: int, watch: _Watch) -> None:
        super().__init__(load, passes)
        self.watch = watch

    def open(self, context: Any) -> None:
        super().open(context)
        self.watch.begin()

    def close(self) -> None:
        self.watch.end("lines")


class _Counted(Counted):
    def __init__(self, path: str, watch: _Watch) -> None:
        super().__init__(path)
        self.watch = watch

    def open(self, context: Any) -> None:
        super().open(context)
        self.watch.begin()

    def close(self) -> None:
        super().close()
        self.watch.end("count")


def watched(load: str, passes: int, out: str, policy: str) -> Topology:
    """Workload A with a policy in each process."""
    watch = _Watch(str(Path(out).parent), policy)

    class Splits(Split):
        def open(self, context: Any) -> None:
            watch.begin()

        def close(self) -> None:
            watch.end("split")

    t = Topology("bench-collector")
    counts = (
        t.spout("lines", _Offered(load, passes, watch))
        .bolt("split", Splits, grouping=shuffle())
        .bolt("count", Count, grouping=by_key())
    )
    counts.sink("out", _Counted(out, watch))
    return t


def run() -> None:
    """Run as the arguments say."""
    parser = argparse.ArgumentParser()
    parser.add_argument("load")
    parser.add_argument("passes", type=int)
    parser.add_argument("policy", choices=list(POLICIES))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        place = locate(f"{Path(__file__)}:watched")
        params = {"load": arguments.load, "passes": arguments.passes, "policy": arguments.policy, "out": str(out)}
        Session(Request(place, params, view=QuietView())).run()
        (seen,) = [each for line in out.read_text().splitlines() if (each := json.loads(line))["rows"]]
        processes = {
            unit: json.loads((Path(folder) / f"{unit}.watched").read_text()) for unit in ("lines", "split", "count")
        }
    print(json.dumps({**seen, "processes": processes}))


if __name__ == "__main__":
    run()
