"""Names in a catalog, of which Spark need not be asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from esault.errors import UsageError
from esault.spark.pipeline import Pipeline
from esault.spark.tables.declared import Tables
from esault.spark.tables.runs import steps_of


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Sales", "--catalog shop: table 'sales' and table 'Sales' would both be shop.sales there; rename one"),
        ("sales_quarantine", "table 'sales_quarantine' and the quarantine of 'sales' would both be shop.sales_quar"),
    ],
)
def test_two_tables_of_one_name_are_refused_before_anything_is_done(tmp_path: Path, name: str, said: str) -> None:
    tables = Tables(["sales"])

    def made(sales: Any) -> Any:
        return sales

    tables.table(made, name=name)
    steps = steps_of(tables, str(tmp_path))
    Pipeline({"sales": str(tmp_path / "s")}, str(tmp_path), steps=steps)
    with pytest.raises(UsageError, match=said):
        Pipeline({"sales": str(tmp_path / "s")}, str(tmp_path), steps=steps, catalog="shop")


def test_a_table_without_a_quarantine_leaves_its_name_free(tmp_path: Path) -> None:
    tables = Tables(["sales"])

    @tables.table
    def sold(sales: Any) -> Any:
        return sales

    @tables.table
    def sold_quarantine(sales: Any) -> Any:
        return sales

    made = Pipeline(
        {"sales": str(tmp_path / "s")}, str(tmp_path), steps=steps_of(tables, str(tmp_path)), catalog="shop"
    )
    assert [step.quarantines for step in made.steps.values()] == [False, False]
