"""One run of the elasticity experiment on actors, in a process of its own; prints one line of JSON.

python -m bench.elastic.run --policy SPEC [--start N] [--most N] [--fixed N] [--seconds S] [--speed X] [--seed N] [--times FILE --burst N --capacity X]
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.elastic.topology import BURST
from bench.kit.quiet_view import QuietView
from esault.messages.settings import Settings
from esault.runtime.session.request import Request
from esault.runtime.session.session import Session
from esault.topology.locate import locate

__all__ = ["run"]


def run() -> None:
    """Run as the arguments say."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--policy", default="probe")
    parser.add_argument("--start", type=int, default=2, help="sub-units at the start")
    parser.add_argument("--most", type=int, default=16, help="sub-units at most")
    parser.add_argument("--fixed", type=int)
    parser.add_argument("--seconds", type=float, default=200.0, help="of real time")
    parser.add_argument("--speed", type=float, default=2.5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--times", default="", help="a file of JSON with seconds at which bursts are due, in place of the paper's"
    )
    parser.add_argument("--burst", type=int, default=BURST, help="tuples in one")
    parser.add_argument("--capacity", type=float, default=560.0, help="tuples a second of one sub-unit")
    arguments = parser.parse_args()
    # The paper's mailboxes have no bound: neither has the window here, nor the inbox.
    settings = Settings(max_pending=1_000_000, inbox_bytes=1 << 30)
    with tempfile.TemporaryDirectory() as folder:
        names = ("seconds", "speed", "seed", "start", "most", "times", "burst", "capacity")
        params: dict[str, Any] = {"folder": folder}
        params.update({name: getattr(arguments, name) for name in names})
        if arguments.fixed:
            params.update(start=arguments.fixed, least=arguments.fixed, most=arguments.fixed)
        place = locate(f"{Path(__file__).with_name('topology.py')}:topology")
        session = Session(
            Request(place, params, settings=settings, slots=32, view=QuietView(), policies={"count": arguments.policy})
        )
        report = session.run()
        bins: dict[int, list[float]] = {}
        logs: Counter[str] = Counter()
        for path in Path(folder).glob("server-*.jsonl"):
            for line in path.read_text().splitlines():
                read = json.loads(line)
                logs.update(read["logs"])
                for second, (count, total, most) in read["seconds"].items():
                    each = bins.setdefault(int(second), [0, 0.0, 0.0])
                    each[0], each[1], each[2] = each[0] + count, each[1] + total, max(each[2], most)
    # A word is finished once, wherever its state was; two finals of one word would show that a state was split.
    finals = Counter(key for key, _ in report.collected["totals"])
    counted = sum(total for _, total in report.collected["totals"])
    unit = report.units["count"]
    result = {
        "emitted": report.units["emitter"].tuples_out,
        "counted": counted,
        "words_in_two_places": sum(n > 1 for n in finals.values()),
        "replayed": report.roots.replayed,
        "seconds": {str(k): v for k, v in sorted(bins.items())},
        "logs": logs,
        "parallelism": [(t * arguments.speed, n) for t, n in unit.parallelism],
        "changes": report.as_dict()["changes"],
        "decisions": [asdict(d) for d in report.decisions],
        "busy_seconds": unit.busy_seconds,
        "run_seconds": report.seconds,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    run()
