"""A measured topology run to its end in this process: when its sources began, when its sinks had the last row."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.kit.quiet_view import QuietView
from esault.control.report.summary import Snapshot
from esault.elasticity.policy import DEFAULT
from esault.elasticity.scaling import EVERY_UNIT
from esault.report import Report
from esault.runtime.session.request import Request
from esault.runtime.session.run import execute
from esault.topology.located import Located

__all__ = ["Commits", "figures", "run_topology"]

#: of all tuples: behind the last commit before these the pace of a run with commits begins
BEGUN = 0.25


class Commits:
    """The tuples of spouts that were through at each time: the `step` of a view on a run that says so with each commit.

    A rate between two commits of one run has no start in it. The difference of two runs has that of both, and they never take the same.
    """

    def __init__(self, spouts: Iterable[str]) -> None:
        self._spouts = tuple(spouts)
        #: (time, tuples), as often as there were more
        self.seen: list[tuple[float, int]] = []

    def __call__(self, snapshot: Snapshot) -> None:
        """Take how things stand."""
        through = sum(unit.tuples_out for unit in snapshot.units if unit.name in self._spouts)
        if through > (self.seen[-1][1] if self.seen else 0):
            self.seen.append((snapshot.now, through))

    def pace(self) -> dict[str, float] | None:
        """Return tuples, and the seconds that they took, from the last commit within the first `BEGUN` of all on; None for one commit."""
        if len(self.seen) < 2:
            return None
        ended, all_of_them = self.seen[-1]
        earlier = [each for each in self.seen[:-1] if each[1] <= BEGUN * all_of_them] or self.seen[:1]
        began, before = earlier[-1]
        return {"tuples": all_of_them - before, "seconds": ended - began}


def run_topology(
    place: Located,
    params: Mapping[str, Any],
    engine: str = "actors",
    policy: str = DEFAULT,
    step: Callable[[Snapshot], None] | None = None,
) -> Report:
    """Run it; `policy` is of all units, on actors; `step` is told how things stand. Raises as `execute` does."""
    policies = {} if engine == "spark" else {EVERY_UNIT: policy}
    return execute(Request(place, params, engine, policies=policies, view=QuietView(step)))


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
