"""One run of `bench/latency/topology.py` on actors, in a process of its own; prints one line of JSON.

python -m bench.latency.timed_run LOAD PASSES --rate SENTENCES [--set NAME=VALUE ...]
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from bench.kit.esault_run import settings_of
from bench.kit.quiet_view import QuietView
from bench.kit.steady_latency import rows_of
from esault.elasticity.policy import NONE
from esault.elasticity.scaling import EVERY_UNIT
from esault.messages.delivery import Delivery
from esault.runtime.session.request import Request
from esault.runtime.session.session import Session
from esault.topology.locate import locate

__all__ = ["run"]


def run() -> None:
    """Run as the arguments say."""
    parser = argparse.ArgumentParser()
    parser.add_argument("load")
    parser.add_argument("passes", type=int)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    arguments = parser.parse_args()
    settings = settings_of(parser, arguments.set)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        params = {"load": arguments.load, "passes": arguments.passes, "rate": arguments.rate, "out": str(out)}
        place = locate(f"{Path(__file__).with_name('topology.py')}:timed")
        state = Path(folder) / "state" if settings.delivery is Delivery.EXACTLY_ONCE else None
        policies = {EVERY_UNIT: NONE}
        Session(Request(place, params, settings=settings, policies=policies, view=QuietView(), state=state)).run()
        seen = [json.loads(line) for line in out.read_text().splitlines()]
        result = {
            "rows": sum(each["rows"] for each in seen),
            "first": min(each["first"] for each in seen if each["rows"]),
            "last": max(each["last"] for each in seen),
            "latencies": rows_of(out),
        }
    print(json.dumps(result))


if __name__ == "__main__":
    run()
