"""What people read of the measured pipeline."""

from __future__ import annotations

import json
from pathlib import Path

from bench.pipelines.speed import Speed

KEPT = Path(__file__).parents[4] / "bench" / "results" / "pipelines"


def test_results_that_are_kept_can_be_said_again_when_kills_are_added() -> None:
    said = (KEPT / "result.txt").read_text()
    for found in json.loads((KEPT / "result.json").read_text())["speed"]:
        assert "\n".join(Speed.lines(found)) in said


def test_processor_seconds_are_said_where_they_were_measured() -> None:
    runs = [{"seconds": 2.0, "load": 1.0, "processor": 3.0}]
    found = {"rows": 10, "bytes": 1_000_000_000, "runs": {"esault": runs}, "ratio": 1.0}
    assert "3 processor seconds, load up to 1" in Speed.lines(found)[1]
