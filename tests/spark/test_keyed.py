"""The rows of a table by key: what is refused, what is remembered, and which files are written again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow")
import pyarrow.parquet as pq

import esault
from esault.errors import EsaultError, UsageError
from esault.sinks.landing.entry import Input
from esault.spark.columns import stored
from esault.spark.derived import DerivedTable
from esault.spark.staging import writing
from esault.spark.tables.declared import Tables
from esault.spark.tables.keyed import KeyedRows
from esault.spark.tables.update import Update

BY = {"keys": ["k"], "sequence_by": "at", "apply_as_deletes": "op = 'd'", "except_column_list": ["op"]}
COLUMNS = "k string, at bigint, v string, op string"


class Table:
    """A table by key, and the updates that make it."""

    def __init__(self, spark: Any, folder: Path, **options: Any) -> None:
        tables = Tables(["changes"])
        tables.table(lambda changes: changes, name="t", **options)
        self.spark = spark
        self.table, self.gone = DerivedTable(str(folder / "t")), DerivedTable(str(folder / "gone"))
        self.keyed = KeyedRows(tables.declared["t"], self.table.path, self.gone)
        self.number = 0
        self.columns = COLUMNS

    def came(self, *rows: tuple[Any, ...], killed: bool = False) -> list[str]:
        """One update with these changes, which may be killed before it is shown; the files in whose place it comes."""
        before = self.table.state()
        why = None if before.inputs else "it is the first time"
        update = Update({}, (Input("changes", self.number + 1),), why, ("changes",))
        frame, schema = stored("t", self.spark.createDataFrame(rows, self.columns))
        with writing(self.spark), self.gone.locked(), self.table.locked():
            made, columns, removed = self.keyed.update(self.spark, frame, schema, update, before)
            if not killed:
                staged = self.table.stage(made.coalesce(1))
                self.table.commit(staged, columns, update.inputs, before, why is not None, removed)
                self.number += 1
        return removed

    def files(self) -> list[str]:
        return list(self.table.state().files or ())

    def rows(self, *columns: str) -> list[tuple[Any, ...]]:
        return sorted(tuple(row.values()) for row in esault.read(self.table.path, columns).to_pylist())


def test_deletions_are_remembered_however_often_their_update_is_killed(spark: Any, tmp_path: Path) -> None:
    table = Table(spark, tmp_path, **BY)
    assert table.came(("a", 1, "x", "u"), ("b", 1, "x", "u")) == []
    (first,) = table.files()
    for killed in (True, True, False):
        assert table.came(("a", 5, "", "d"), killed=killed) == [first]
    assert len(esault.read(table.gone.path)) == 3  # they are facts
    assert table.came(("a", 3, "late", "u"), ("c", 2, "z", "u")) == []
    assert table.rows("k", "at", "v") == [("b", 1, "x"), ("c", 2, "z")]
    (of_b,) = (name for name in table.files() if "b" in pq.read_table(tmp_path / "t" / name)["k"].to_pylist())
    (of_c,) = (name for name in table.files() if name != of_b)
    assert table.came(("a", 9, "y", "u"), ("c", 1, "old", "u")) == [of_c]
    assert of_b in table.files()  # none of its keys has changed
    assert table.rows("k", "at", "v") == [("a", 9, "y"), ("b", 1, "x"), ("c", 2, "z")]


def test_versions_end_with_a_deletion_whose_update_was_killed_and_with_what_comes_late(
    spark: Any, tmp_path: Path
) -> None:
    table = Table(spark, tmp_path, stored_as_scd_type=2, **BY)
    table.came(("a", 1, "x", "u"))
    table.came(("a", 5, "", "d"), killed=True)
    table.came(("a", 9, "z", "u"), ("a", 5, "", "d"))
    table.came(("a", 3, "y", "u"))
    versions = [("x", 1, 3), ("y", 3, 5), ("z", 9, None)]
    assert table.rows("v", "__START_AT", "__END_AT") == versions


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({**BY, "keys": ["kk"]}, "keys names 'kk', which its function does not return; there are: k, at, v, op"),
        ({**BY, "sequence_by": "when"}, "sequence_by names 'when', which its function does not return"),
        ({**BY, "except_column_list": ["op", "at"]}, "at must be stored, since rows go by it"),
        (
            {**BY, "apply_as_deletes": "count(op) > 1"},
            r"apply_as_deletes is no condition on a row \(count\(op\) > 1\): ",
        ),
        ({"keys": ["k"], "merge": {"at": "max"}}, "say in merge, too, how column 'v' is merged"),
        ({"keys": ["k"], "merge": {"n": "max"}}, "merge names 'n', which its function does not return"),
    ],
)
def test_columns_by_which_rows_go_must_be_there(spark: Any, tmp_path: Path, options: dict[str, Any], said: str) -> None:
    table = Table(spark, tmp_path, **options)
    frame, schema = stored("t", spark.createDataFrame([], COLUMNS))
    with pytest.raises(UsageError, match=said) as raised:
        table.keyed.columns(frame, schema)
    assert "Relation" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("__deleted", BY),
        ("__row", {**BY, "keys": ["k", "__row"]}),
        ("__START_AT", {**BY, "stored_as_scd_type": 2}),
        ("__part", {"keys": ["k", "__part"], "merge": {"at": "max", "v": "max", "op": "max"}}),
    ],
)
def test_names_that_are_added_on_the_way_are_refused(
    spark: Any, tmp_path: Path, name: str, options: dict[str, Any]
) -> None:
    table = Table(spark, tmp_path, **options)
    frame, schema = stored("t", spark.createDataFrame([], f"{COLUMNS}, {name} string"))
    with pytest.raises(
        UsageError, match=f"column '{name}' has the name of one that is added while its rows are merged"
    ):
        table.keyed.columns(frame, schema)


def test_a_table_of_versions_may_be_read_by_another(spark: Any, tmp_path: Path) -> None:
    table = Table(spark, tmp_path, keys=["k"], sequence_by="__START_AT")
    table.columns = "k string, v string, __START_AT bigint, __END_AT bigint"
    table.came(("a", "x", 1, 3), ("b", "x", 2, None))
    table.came(("a", "y", 3, None))
    assert table.rows("k", "v", "__START_AT", "__END_AT") == [("a", "y", 3, None), ("b", "x", 2, None)]


def test_what_is_called_so_may_say_what_is_deleted(spark: Any, tmp_path: Path) -> None:
    table = Table(
        spark, tmp_path, **{**BY, "apply_as_deletes": "__deleted = 'true'", "except_column_list": ["__deleted"]}
    )
    frame, schema = stored("t", spark.createDataFrame([], "k string, at bigint, __deleted string"))
    assert [column.name for column in table.keyed.columns(frame, schema)] == ["k", "at"]


def test_a_change_without_its_key_or_its_sequence_is_refused_and_changes_nothing(spark: Any, tmp_path: Path) -> None:
    table = Table(spark, tmp_path, **BY)
    with pytest.raises(EsaultError, match="2 changes have null in k or at; leave them out with expect_all_or_drop"):
        table.came(("a", None, "x", "u"), (None, 2, "x", "d"), ("b", 1, "x", "d"))
    assert table.table.state().version == table.gone.state().version == -1
