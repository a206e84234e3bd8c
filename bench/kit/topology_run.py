"""A measured topology run to its end in this process: when its sources began, when its sinks had the last row."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.kit.quiet_view import QuietView
from esault.elasticity.policy import DEFAULT
from esault.elasticity.scaling import EVERY_UNIT
from esault.report import Report
from esault.runtime.session.request import Request
from esault.runtime.session.run import execute
from esault.topology.located import Located

__all__ = ["figures", "run_topology"]


def run_topology(place: Located, params: Mapping[str, Any], engine: str = "actors", policy: str = DEFAULT) -> Report:
    """Run it; `policy` is of all units, on actors. Raises as `execute` does."""
    policies = {} if engine == "spark" else {EVERY_UNIT: policy}
    return execute(Request(place, params, engine, policies=policies, view=QuietView()))


def figures(report: Report, spouts: Iterable[str], started: float, out: Path) -> dict[str, Any]:
    """Return the lines that a run prints, from its report and from what sources and sinks said in `out`, a line of JSON each.

    `seconds` are from the first read to the last result, or from `started` where no source said when it was read; `first` is when
    the first result came.
    """
    said = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    sources = [each for each in said if each.get("begun")]
    sinks = [each for each in said if each.get("rows")]
    begun = min((each["begun"] for each in sources), default=started)
    ended = max([each["ended"] for each in sources] + [each["last"] for each in sinks], default=time.time())
    return {
        "begun": begun,
        "first": min((each["first"] for each in sinks), default=begun),
        "seconds": ended - begun,
        "read": sum(report.units[spout].tuples_out for spout in spouts),
        "rows": sum(each["rows"] for each in sinks),
        "latency_ms": asdict(report.end_to_end_ms),
        "parallelism": {name: unit.parallelism[-1][1] for name, unit in report.units.items() if unit.parallelism},
    }
