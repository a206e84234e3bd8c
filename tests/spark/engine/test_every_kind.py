"""State and values of every kind through Spark and back: equal to a plain loop in one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from esault.messages.settings import Settings
from esault.runtime.session.request import Request
from esault.runtime.session.run import execute
from esault.topology.locate import locate

FILE = Path(__file__).parents[2] / "acceptance" / "every_kind.py"

pytestmark = pytest.mark.timeout(400)


def test_state_and_values_of_every_kind_come_out_as_in_one_process(spark: Any, tmp_path: Path) -> None:
    settings = Settings(delivery="eo", checkpoint_every=0.5)
    report = execute(
        Request(
            locate(f"{FILE}:every_kind"),
            {"n": 600, "rate": 400.0},
            "spark",
            settings=settings,
            state=str(tmp_path / "state"),
        )
    )
    assert report.ended == "drained"
    expected = vars(locate(f"{FILE}:every_kind").load_module())["expected"]
    found = {key: shown for key, (_, shown) in report.collected["out"]}
    assert found == expected(600)
    assert sum(count for _, (count, _) in report.collected["out"]) == 600
