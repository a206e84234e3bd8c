"""How the driver reads spouts ahead, and what it says when it is asked to drain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from esault.spark.engine import reading
from esault.spark.engine.offsets import latest, start
from esault.spark.engine.reading import Reading
from tests.unit.spark.engine.flows import endless


def made(folder: Path) -> Reading:
    plan = endless().plan()
    made = Reading(plan, lambda: endless().plan(), "run", str(folder), folder, folder, start({"numbers": 1}))
    for part in made.parts:
        part.open(made._contexts[0])
    return made


@pytest.mark.parametrize("pause", [False, True])
def test_a_drain_that_is_asked_for_in_mid_step_is_that_of_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pause: bool
) -> None:
    spouts = made(tmp_path)

    def publish(*arguments: Any) -> None:
        spouts.drain(pause)  # as the driver's thread may, at any time
        published(*arguments)

    published = reading.publish
    monkeypatch.setattr(reading, "publish", publish)
    assert spouts.step(1.0) and not spouts.over.is_set()
    assert not spouts.step(1.0) and spouts.over.is_set()
    read = latest(tmp_path)
    assert read["end"] is not pause and read["parts"]["numbers"][0][0] == spouts.parts[0].rows > 0
