"""Versions of a table as folders of hard links, and the query that reads them; without a session of Spark."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'esault[spark]'")
sys.path.insert(0, str(Path(__file__).parent / "tables"))
from derived_tables import add

from esault.errors import SinkError
from esault.sinks.landing.schema import ADDED, Column
from esault.spark.derived import DerivedTable
from esault.spark.snapshot import Snapshots, literal

DAY = 86400.0


def shown(table: Path, name: str = "v") -> Path:
    return table / "_esault_catalog" / name


def test_a_version_is_linked_once_and_outlives_its_table_s_files(tmp_path: Path) -> None:
    add(tmp_path, [1])
    table = add(tmp_path, [2])
    state, snapshots = table.state(), Snapshots(str(tmp_path), "v")
    query = snapshots.query(state)
    folder = shown(tmp_path) / str(state.version) / "0"
    assert query == f"SELECT `n` FROM parquet.`file://{folder}`"
    assert {path.name for path in folder.iterdir()} == set(state.files or ())
    for name in state.files or ():
        assert os.path.samefile(tmp_path / name, folder / name)
        os.unlink(tmp_path / name)
    assert snapshots.query(state) == query, "it is there: no part of the table is asked for"
    assert all(path.stat().st_size for path in folder.iterdir())


def test_a_part_that_is_gone_leaves_no_half_of_a_version(tmp_path: Path) -> None:
    add(tmp_path, [1])
    table = add(tmp_path, [2])
    os.unlink(tmp_path / list(table.state().files or ())[1])
    with pytest.raises(SinkError, match="writing"):
        Snapshots(str(tmp_path), "v").query(table.state())
    assert not list(shown(tmp_path).iterdir())


def test_versions_stay_for_a_day_behind_the_last_view_of_them(tmp_path: Path) -> None:
    snapshots = Snapshots(str(tmp_path), "v")
    versions = []
    for n in range(4):
        state = add(tmp_path, [n]).state()
        snapshots.query(state)
        versions.append(str(state.version))
    old = os.stat(shown(tmp_path)).st_mtime - DAY - 60
    for name in versions:
        os.utime(shown(tmp_path) / name, (old, old))
    _, second, before, now = versions
    os.utime(shown(tmp_path) / second, (old + DAY, old + DAY))
    snapshots.forget(before, now)
    # the one that is shown, that of a moment ago, and one that was shown less than a day ago
    assert sorted(os.listdir(shown(tmp_path))) == sorted([second, before, now])
    assert os.stat(shown(tmp_path) / before).st_mtime > old + DAY


def test_a_table_without_rows_has_columns_of_its_kinds(tmp_path: Path) -> None:
    state = DerivedTable(str(tmp_path)).state()
    state.schema, state.files = (Column("n", "long"), Column("a `b`", "string", True)), {}
    query = Snapshots(str(tmp_path), "v").query(state)
    assert query == "SELECT CAST(NULL AS bigint) AS `n`, CAST(NULL AS string) AS `a ``b``` WHERE false"


def test_rows_that_may_stand_twice_are_read_once_and_those_without_an_id_all(tmp_path: Path) -> None:
    state = add(tmp_path, [1]).state()
    assert "row_number" not in Snapshots(str(tmp_path), "v").query(state)
    state.schema, state.clean = (*state.schema, *ADDED), False
    query = Snapshots(str(tmp_path), "v").query(state)
    assert "row_number() OVER (PARTITION BY _run, _id ORDER BY _time)" in query
    assert "WHERE _id IS NOT NULL) WHERE _place = 1 UNION ALL" in query and query.endswith("WHERE _id IS NULL")


@pytest.mark.parametrize(("text", "said"), [("it's", r"'it\'s'"), ("a\\b", r"'a\\b'"), ("", "''"), ("\\'", r"'\\\''")])
def test_texts_are_literals_of_sql(text: str, said: str) -> None:
    assert literal(text) == said
