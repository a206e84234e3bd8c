"""What the first version has read, as its shadow reads it."""

from __future__ import annotations

import json
from datetime import date

import pytest

from esault.errors import UsageError
from esault.shadow.folder import ShadowFolder
from esault.shadow.rows import ComparedRows, ReadRows, RowsForShadow
from esault.topology.context import Context
from esault.topology.sink import RunInfo
from esault.topology.spout import EndOfStream

ROWS = [(n, (n, date(2026, 1, 1 + n % 28), {"a": b"\xff"})) for n in range(2500)]


@pytest.fixture
def folder(tmp_path):
    made = ShadowFolder(tmp_path / "shadow")
    made.begin({"first": {}})
    return made


def sink(made):
    made.begin(RunInfo("r", "t", "lines"))
    made.open(Context(unit="lines", sub_unit=1, run="r"))
    return made


def commit(made, epoch, rows):
    made.write_columns([key for key, _ in rows], [value for _, value in rows], 0.0, None)
    made.commit(epoch, made.prepare(epoch))


def rows_until(spout, wanted=None):
    found = []
    while wanted is None or len(found) < wanted:
        found += spout.read(300)
    return found


def test_rows_come_as_they_were_once_they_are_committed_and_end_with_the_first_version(folder):
    first, shadow = sink(RowsForShadow(folder.read_by("lines"))), ReadRows(str(folder.path), "lines")
    assert shadow.read(10) == []
    first.write_columns([1], [2], 0.0, None)
    first.prepare(1)
    assert shadow.read(10) == [], "what is not committed may be taken back"
    first.open(first.context)
    commit(first, 2, ROWS)
    assert rows_until(shadow, len(ROWS)) == ROWS
    assert shadow.read(10) == []
    commit(first, 3, ROWS[:1])
    folder.end_of_rows()
    assert rows_until(shadow, 1) == ROWS[:1]
    with pytest.raises(EndOfStream):
        shadow.read(10)


def test_where_the_first_version_was_paused_nothing_ends_and_it_is_known_that_all_was_read(folder):
    commit(sink(RowsForShadow(folder.read_by("lines"))), 1, ROWS)
    shadow = ReadRows(str(folder.path), "lines")
    shadow.check()
    folder.paused.touch()
    folder.end_of_rows()
    assert rows_until(shadow, len(ROWS)) == ROWS
    assert not folder.all_read
    assert shadow.read(10) == []
    assert folder.all_read


@pytest.mark.parametrize("before", [0, 1, 300, 1000, 1900, 2500])
def test_it_goes_on_where_it_was(folder, before):
    commit(sink(RowsForShadow(folder.read_by("lines"))), 1, ROWS)
    shadow = ReadRows(str(folder.path), "lines")
    found = []
    while len(found) < before:
        found += shadow.read(before - len(found))
    again = ReadRows(str(folder.path), "lines")
    again.seek(shadow.position())
    assert again.position() == shadow.position()
    assert rows_until(again, len(ROWS) - before) == ROWS[before:]


def test_a_row_that_json_has_no_place_for_fails_nothing(folder):
    path = folder.rows("first", "out")
    commit(sink(ComparedRows(path)), 1, [("k", object), ("l", 1)])
    with open(path) as file:
        assert [json.loads(line) for line in file] == [
            {"key": "'k'", "value": "<class 'object'>"},
            {"key": "l", "value": 1},
        ]


def test_a_folder_has_one_run_at_a_time(folder, tmp_path):
    with pytest.raises(UsageError, match="another run has a shadow"):
        ShadowFolder(folder.path).begin({})
    folder.end_of_rows()
    ShadowFolder(folder.path).begin({})
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letters").touch()
    with pytest.raises(UsageError, match="holds other things"):
        ShadowFolder(tmp_path / "mine").begin({})
    assert (tmp_path / "mine" / "letters").exists()
