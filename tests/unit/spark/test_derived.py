"""A table that jobs make: parts are seen from their entry on, one job writes at a time, and what it read is checked."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow")
sys.path.insert(0, str(Path(__file__).parent / "tables"))
from derived_tables import SCHEMA, add, part_of

import esault
from esault.errors import SinkError
from esault.sinks.landing.compaction import replace_parts
from esault.sinks.landing.entry import Input
from esault.sinks.landing.log import Conflict
from esault.sinks.landing.schema import ADDED, Column
from esault.spark.compact import compact
from esault.spark.derived import DerivedTable

READ = (Input("source", 3, "m"), Input("rules", 0, "r"))


def rows(path: Path) -> list[int]:
    return sorted(row["n"] for row in esault.read(path).to_pylist())


def files(path: Path) -> set[str]:
    return {name for name in os.listdir(path) if name.endswith(".parquet")}


def test_rows_and_what_was_read_for_them_are_there_together(tmp_path: Path) -> None:
    table = DerivedTable(str(tmp_path))
    assert table.state().version == -1
    with table.locked():
        before = table.state()
        part = part_of(table, [1, 2])
        assert table.state().version == -1, "a staged part is seen by nobody"
        table.commit([part], SCHEMA, READ, before, whole=False)
    assert rows(tmp_path) == [1, 2] and table.state().inputs == READ
    with table.locked():
        table.commit([part_of(table, [3])], SCHEMA, (Input("source", 4, "n"),), table.state(), whole=False)
    assert rows(tmp_path) == [1, 2, 3] and table.state().inputs == (Input("source", 4, "n"),)


def test_parts_come_in_the_place_of_some_or_of_all(tmp_path: Path) -> None:
    add(tmp_path, [1, 2])
    table = add(tmp_path, [3])
    first = next(name for name, part in (table.state().files or {}).items() if part.rows == 2)
    with table.locked():
        table.commit([part_of(table, [2, 9])], SCHEMA, READ, table.state(), False, removed=[first])
    assert rows(tmp_path) == [2, 3, 9]
    add(tmp_path, [7], whole=True)
    assert rows(tmp_path) == [7]
    assert first in files(tmp_path), "readers of before have a day"


def test_what_was_replaced_is_removed_behind_its_time(tmp_path: Path) -> None:
    add(tmp_path, [1])
    (old,) = files(tmp_path)
    table = DerivedTable(str(tmp_path), retention=3600.0)
    with table.locked():
        table.commit([part_of(table, [2])], SCHEMA, (), table.state(), whole=True)
    assert old in files(tmp_path)
    long_ago = os.stat(tmp_path / old).st_mtime - 7200
    os.utime(tmp_path / old, (long_ago, long_ago))
    with table.locked():
        table.commit([part_of(table, [3])], SCHEMA, (), table.state(), whole=False)
    assert old not in files(tmp_path) and rows(tmp_path) == [2, 3]


def test_what_a_compaction_is_about_to_show_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = DerivedTable(str(tmp_path), retention=0.0)

    def more(number: int) -> None:
        with table.locked():
            table.commit([part_of(table, [number])], SCHEMA, (), table.state(), whole=False)

    def meanwhile(*arguments: Any) -> Any:
        more(3)
        return replace_parts(*arguments)

    more(1)
    more(2)
    monkeypatch.setattr("esault.spark.compact.replace_parts", meanwhile)
    compact(tmp_path)
    assert sorted(rows(tmp_path)) == [1, 2, 3]


def test_a_removal_counts_from_when_it_was_made(tmp_path: Path) -> None:
    add(tmp_path, [1])
    (old,) = files(tmp_path)
    os.utime(tmp_path / old, (1_000_000_000, 1_000_000_000))
    add(tmp_path, [2], whole=True)
    assert old in files(tmp_path), "it was written years ago, and replaced just now"


def test_a_new_column_is_added_and_rows_of_before_have_null(tmp_path: Path) -> None:
    table = add(tmp_path, [1])
    with table.locked():
        wider = (*SCHEMA, Column("word", "string", True))
        table.commit([part_of(table, [2])], wider, (), table.state(), whole=False)
    assert [column.name for column in table.state().schema] == ["n", "word"]
    assert [row["word"] for row in esault.read(tmp_path).to_pylist()] == [None, None]


def test_rows_that_are_added_to_no_table_make_one_with_their_columns(tmp_path: Path) -> None:
    table = DerivedTable(str(tmp_path))
    schema = (*SCHEMA, *ADDED)  # what a quarantine has, whose folder somebody removed
    with table.locked():
        table.commit([part_of(table, [1])], schema, (), table.state(), whole=False)
    assert table.state().schema == schema and not table.state().evolved


def test_a_table_that_another_one_has_made_meanwhile_is_left_as_it_is(tmp_path: Path) -> None:
    table = add(tmp_path, [1], inputs=READ)
    before = table.state()
    add(tmp_path, [2], inputs=(Input("source", 4, "n"),))
    with table.locked(), pytest.raises(Conflict, match="was made by another process meanwhile; analyze again"):
        table.commit([part_of(table, [3])], SCHEMA, (Input("source", 4, "n"),), before, whole=False)
    assert rows(tmp_path) == [1, 2]


def test_one_job_writes_at_a_time_and_clears_what_a_killed_one_left(tmp_path: Path) -> None:
    table = add(tmp_path, [1])
    (tmp_path / ".staging-1" / "_temporary").mkdir(parents=True)
    (tmp_path / ".other").mkdir()
    with table.locked():
        assert not (tmp_path / ".staging-1").exists() and (tmp_path / ".other").exists()
        with pytest.raises(SinkError, match="esault analyze"), DerivedTable(str(tmp_path)).locked():
            pass
    with DerivedTable(str(tmp_path)).locked():
        pass


def test_parts_that_are_discarded_are_gone(tmp_path: Path) -> None:
    table = add(tmp_path, [1])
    kept = files(tmp_path)
    with table.locked():
        table.discard([part_of(table, [2])])
    assert files(tmp_path) == kept and rows(tmp_path) == [1]
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".tmp")]
