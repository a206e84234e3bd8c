"""What a pipeline does around the jobs of Spark; no Spark in here."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent / "tables"))
from derived_tables import add

from esault.sinks.landing import table_log
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


class Spark:
    """A session, as far as it is asked whether it lives: as Python's side of Spark, whose Java is `alive`, stopped, or gone."""

    def __init__(self) -> None:
        self.alive = True
        self.gone = False
        self.sparkContext = self._jsc = self

    def sc(self) -> Spark:
        if self.gone:
            raise ConnectionRefusedError
        return self

    def isStopped(self) -> bool:
        return not self.alive


@pytest.mark.parametrize("how", ["stopped", "gone"])
def test_a_kept_session_whose_java_has_died_is_replaced_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    open_now: list[Spark] = []

    @contextlib.contextmanager
    def session(**_: Any) -> Iterator[Spark]:
        made = Spark()
        open_now.append(made)
        yield made
        open_now.remove(made)

    monkeypatch.setattr(pipeline, "session", session)
    made = Pipeline({"sales": str(tmp_path / "sales")}, str(tmp_path / "into"))
    with made.kept_session():
        with made.spark() as spark:
            first: Any = spark()
            assert spark() is first
        if how == "gone":
            first.gone = True
        else:
            first.alive = False
        with made.spark() as spark:
            second: Any = spark()
            assert second is not first
            assert open_now == [second]
        with made.spark() as spark:
            assert spark() is second
    assert open_now == []


def test_the_list_says_which_tables_wait_for_what_they_read(tmp_path: Path) -> None:
    def step(name: str, reads: list[str], todo: str) -> Any:
        members = {"table_name": name, "name": f"table:{name}", "reads_tables": reads, "reads": ", ".join(reads)}
        path = str(tmp_path / name)
        return SimpleNamespace(**members, writes=name, path=path, todo=lambda: todo, quarantines=False)

    steps = [step("sold", [], "3 rows in 1 part"), step("by_shop", ["sold"], "up to date")]
    steps += [step("best", ["by_shop"], "up to date"), step("moves", [], "up to date")]
    jobs, _ = Pipeline({}, str(tmp_path / "into"), steps=steps).listing()
    first = "what it reads is made first"
    assert [row[3] for row in jobs.rows] == ["3 rows in 1 part", first, first, "up to date", "to be made"]


def test_small_parts_of_what_a_step_writes_besides_are_put_together_too(tmp_path: Path) -> None:
    class Step:
        name, table_name, reads_tables, quarantines = "table:sold", "sold", ("sales",), True
        reads = writes = comment = ""
        path = str(tmp_path / "tables/sold")
        beside = (str(tmp_path / "quarantine/sold"), str(tmp_path / "deleted/sold"))

        def run(self, *_: Any) -> str:
            return "done"

    step: Any = Step()
    made = Pipeline({"sales": str(tmp_path / "sales")}, str(tmp_path / "into"), steps=[step])
    for folder, count in ((step.path, 8), (step.beside[0], 8), (step.beside[1], 7)):
        for n in range(count):
            add(Path(folder), [n])
    made._step(step, lambda: None, False)  # type: ignore[arg-type, return-value]
    assert [len(table_log(folder).files()) for folder in (step.path, *step.beside)] == [1, 1, 7]


def test_a_job_that_is_done_is_not_done_anew_where_another_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, bool]] = []

    class Step:
        table_name, reads_tables, beside, quarantines = "sold", ("sales",), (), False
        reads = writes = comment = ""
        name, path = "table:sold", str(tmp_path / "tables/sold")

        def run(self, spark: Any, say: Any, full: bool = False) -> None:
            asked.append(("sold", full))
            if len(asked) == 2:
                raise ConnectionResetError

    made = Pipeline({"sales": str(tmp_path / "sales")}, str(tmp_path / "into"), steps=[Step()])
    monkeypatch.setattr(made, "_check_rows", lambda: None)
    monkeypatch.setattr(made, "_clean", lambda table, spark, full, began: asked.append((table, full)))
    done: set[str] = set()
    with pytest.raises(ConnectionResetError):
        made.run("tables", True, done)
    made.run("tables", True, done)
    assert asked == [("sales", True), ("sold", True), ("sales", False), ("sold", True)]
