"""What the job of a declared table refuses before Spark is asked for anything."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'esault[spark]'")
sys.path.insert(0, str(Path(__file__).parent))
from derived_tables import SCHEMA, add, part_of

from esault.errors import UsageError
from esault.sinks.landing.entry import Input
from esault.spark.derived import DerivedTable
from esault.spark.tables.declared import Tables
from esault.spark.tables.runs import steps_of
from esault.spark.tables.step import TableStep


class Asked(Exception):
    """Spark is asked for."""


def asks() -> Any:
    raise Asked


def commit(table: DerivedTable, inputs: tuple[Input, ...]) -> None:
    with table.locked():
        table.commit([part_of(table, [0])], SCHEMA, inputs, table.state(), False)


@pytest.fixture
def step(tmp_path: Path) -> TableStep:
    """A table with a quarantine, made of rows of which some have landed since."""
    tables = Tables(["sales"])

    @tables.table(expect_all_or_quarantine={"some": "n > 0"})
    def sold(sales: Any) -> Any:
        return sales

    add(tmp_path / "clean/sales", [1])
    (made,) = steps_of(tables, str(tmp_path))
    update, _ = made.next()
    assert update is not None
    for table in (made.quarantine, made.table):
        commit(table, update.inputs)
    assert made.next() == (None, False)
    add(tmp_path / "clean/sales", [2])
    return made


def test_a_range_waits_for_an_update_that_was_killed_behind_its_quarantine(step: TableStep) -> None:
    update, _ = step.next()
    assert update is not None
    commit(step.quarantine, update.inputs)
    # rows of that update are put aside: what is not in the range would be so once more
    with pytest.raises(UsageError, match=r"an update of table sold was killed .* run esault analyze --job table:sold,"):
        step.backfill(asks, lambda text: None, "n > 0")
    commit(step.table, update.inputs)
    with pytest.raises(Asked):
        step.backfill(asks, lambda text: None, "n > 0")


def test_a_range_that_was_killed_behind_its_quarantine_is_made_again(step: TableStep) -> None:
    commit(step.quarantine, (*step.table.state().inputs, Input("backfill", 1)))
    with pytest.raises(Asked):
        step.backfill(asks, lambda text: None, "n > 0")
