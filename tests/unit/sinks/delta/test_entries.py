"""The entries of a Delta table's log as files."""

from __future__ import annotations

import pytest

from esault.errors import SinkError
from esault.sinks.delta.entries import Entries
from esault.sinks.landing.disk import LocalDisk


@pytest.fixture
def table(tmp_path):
    (tmp_path / "_delta_log").mkdir()
    return tmp_path


def write(table, version, text):
    (table / "_delta_log" / f"{version:020}.json").write_text(text)


@pytest.mark.parametrize("last", ["", "{", '{"a": 1}\n{"b"', "\0\0\0"])
def test_an_entry_that_is_not_whole_is_named(table, last):
    write(table, 0, '{"a": 1}\n')
    write(table, 10, last)
    said = str(Entries(str(table), LocalDisk()).explained(ValueError("odd")))
    assert "not whole" in said and f"{10:020}.json" in said


def test_where_the_last_is_whole_the_error_is_the_librarys(table):
    write(table, 2, "{")
    write(table, 10, '{"a": 1}\n{"b": 2}')
    (table / "_delta_log" / "_last_checkpoint").write_text("{")
    (table / "_delta_log" / f"{11:020}.checkpoint.parquet").write_text("")
    assert str(Entries(str(table), LocalDisk()).explained(ValueError("odd"))).endswith("cannot be read: odd")


def test_no_log_is_no_other_error(tmp_path):
    assert "odd" in str(Entries(str(tmp_path), LocalDisk()).explained(ValueError("odd")))


def test_what_is_gone_meanwhile_and_other_files_do_no_harm(table):
    write(table, 0, "{}")
    (table / "_delta_log" / "dangling.json").symlink_to("none")
    (table / "_delta_log" / f"{1:020}.json").symlink_to("none")
    entries = Entries(str(table), LocalDisk())
    entries.sync(1)
    entries.sync(1)
    with pytest.raises(SinkError, match="making durable"):
        Entries(str(table / "none"), LocalDisk()).sync(0)
