"""One run of `bench/async_calls/topology.py` on actors, in a process of its own; prints one line of JSON.

python -m bench.async_calls.run ROWS SECONDS CONCURRENCY
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from bench.kit.quiet_view import QuietView
from esault.elasticity.scaling import EVERY_UNIT
from esault.runtime.session.request import Request
from esault.runtime.session.session import Session
from esault.topology.locate import locate

__all__ = ["run"]


def run() -> None:
    """Run as the arguments say."""
    rows, seconds, concurrency = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        params = {"out": str(out), "rows": rows, "seconds": seconds, "concurrency": concurrency}
        place = locate(f"{Path(__file__).with_name('topology.py')}:topology")
        report = Session(Request(place, params, view=QuietView(), policies={EVERY_UNIT: "none"})).run()
        seen = [json.loads(line) for line in out.read_text().splitlines()]
    filled = [s for s in seen if s["rows"]]
    result = {
        "rows": sum(s["rows"] for s in filled),
        "first": min(s["first"] for s in filled),
        "last": max(s["last"] for s in filled),
        "replayed": report.roots.replayed,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    run()
