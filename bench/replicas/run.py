"""One run of `bench/replicas/topology.py` on actors, in a process of its own; prints one line of JSON.

python -m bench.replicas.run --replicas N --rows N [--rate R] [--kill SECONDS]
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from bench.kit.quiet_view import QuietView
from esault.control.report.summary import Snapshot
from esault.elasticity.scaling import EVERY_UNIT
from esault.runtime.session.request import Request
from esault.runtime.session.session import Session
from esault.topology.locate import locate

__all__ = ["run"]


def run() -> None:
    """Run as the arguments say."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--replicas", type=int, required=True)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--rate", type=float, default=0.0)
    parser.add_argument("--kill", type=float, help="seconds after which a process of `count` is killed")
    arguments = parser.parse_args()
    killed: list[int] = []

    def step(snapshot: Snapshot) -> None:
        if arguments.kill is None or killed or snapshot.seconds < arguments.kill:
            return
        unit = next(unit for unit in snapshot.units if unit.name == "count")
        killed.extend(unit.processes.values())
        os.kill(killed[0], signal.SIGKILL)

    with tempfile.TemporaryDirectory() as folder:
        params: dict[str, Any] = {"folder": folder, "rows": arguments.rows, "rate": arguments.rate}
        params["replicas"] = arguments.replicas
        place = locate(f"{Path(__file__).with_name('topology.py')}:topology")
        report = Session(Request(place, params, view=QuietView(step), policies={EVERY_UNIT: "none"})).run()
        seen: Counter[int] = Counter()
        for path in Path(folder).glob("ids-*"):
            seen.update(map(int, path.read_text().split()))
    busy = {name: 1e6 * unit.busy_seconds / arguments.rows for name, unit in report.units.items()}
    times = report.end_to_end_ms
    result = {
        "first": time.time(),
        "seconds": report.seconds,
        "worst_ms": times.max,
        "p99_ms": times.p99,
        "busy_us": busy,
        "killed": len(killed),
        "deaths": report.deaths,
        "replayed": report.roots.replayed,
        "missing": arguments.rows - len(seen),
        "repeated": seen.total() - len(seen),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    run()
