"""What a pipeline does around the jobs of Spark; no Spark in here."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from esault.spark import pipeline
from esault.spark.pipeline import Pipeline


def test_the_progress_of_a_job_that_asks_twice_for_spark_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    @contextlib.contextmanager
    def progress(spark: Any, what: str, say: Any) -> Iterator[None]:
        told.append(what)
        yield
        told.append(f"{what} is over")

    class Asks:
        def run(self, spark: Callable[[], Any], *_: Any) -> None:
            spark()
            spark()

    monkeypatch.setattr(pipeline, "progress", progress)
    made = Pipeline({"sales": str(tmp_path / "sales")}, str(tmp_path / "into"))
    made.clean["sales"] = Asks()  # type: ignore[assignment]
    made._clean_step("sales", lambda: None, False)  # type: ignore[arg-type, return-value]
    assert told == ["clean sales", "clean sales is over"]
