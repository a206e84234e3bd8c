"""Programs on the Spark engine: the same files, and what they land is what a plain loop gives."""

from __future__ import annotations

import sys
from pathlib import Path

import depth
import pytest

from esault.runtime.session.request import Request
from esault.runtime.session.run import execute
from esault.topology.locate import locate

sys.path.insert(0, str(Path(__file__).parents[2] / "programs"))
from user_programs import Program

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]
SIZE = 240
CHOSEN = (
    "doors",
    "silences",
    "parcels",
    "recently_used",
    "accounts",
    "reviews",
    "telemetry",
    "takings_by_hour",
    "stock",
    "limits",
    "offers",
    "helpdesk",
)


#: a pattern with timers; rows that are broadcast are in tests/unit/spark/engine/test_chain.py, without a JVM
FEW = ("helpdesk",)


@pytest.mark.parametrize("name", depth.chosen(CHOSEN, FEW))
def test_what_it_lands_is_what_a_plain_loop_gives(spark, name, tmp_path, monkeypatch):
    # two batches, so that state goes from one to the next
    monkeypatch.setattr("esault.spark.engine.batch_size.FIRST", SIZE // 2)
    program = Program(name)
    params = {"size": SIZE, "rate": 1e6, "out": str(tmp_path / "out")}
    report = execute(Request(locate(str(program.path)), params, "spark"))
    assert (report.engine, report.ended) == ("spark", "drained")
    program.check_files(tmp_path / "out", SIZE)
