"""Tables of `lookup` that are read again."""

from __future__ import annotations

import os

import pytest

from esault import Topology, TopologyError
from esault.sources import Items
from esault.topology.operators.functions import Found, Lookup, Reread


class Reads:
    def __init__(self):
        self.now, self.table, self.calls = 0.0, {"a": 1}, 0

    def read(self):
        self.calls += 1
        if self.table is None:
            raise OSError("away")
        return dict(self.table)


def test_a_table_is_read_again_when_so_many_seconds_have_passed_and_something_comes():
    it = Reads()
    look = Lookup(Reread(it.read, 60.0, lambda: it.now), None)
    assert look("a") == ("a", 1)
    it.table = {"a": 2}
    it.now = 59.9
    assert look("a") == ("a", 1)
    it.now = 500.0
    assert look("a") == ("a", 2)
    assert it.calls == 2
    it.now = 559.0
    assert look("a") == ("a", 2)
    assert it.calls == 2


def test_a_table_that_cannot_be_read_again_stays_and_is_told_once_in_a_row(capsys):
    it = Reads()
    look = Found(Reread(it.read, 1.0, lambda: it.now), None)
    assert look("a") == (("a", 1),)
    it.table = None
    for it.now in (2.0, 4.0):
        assert look("a") == (("a", 1),)
    assert capsys.readouterr().err.count("stays as it was: OSError: away") == 1
    it.table, it.now = {"b": 1}, 6.0
    assert look("a") == ()


def test_what_the_first_reading_raises_is_raised():
    it = Reads()
    it.table = None
    with pytest.raises(OSError, match="away"):
        Lookup(Reread(it.read, 1.0), None)("a")


def test_a_file_that_changed_or_was_replaced_is_read_again(tmp_path):
    it, file = Reads(), tmp_path / "table.txt"
    file.write_text("1")
    look = Lookup(Reread(lambda: {"a": it.read() and file.read_text()}, file, lambda: it.now), None)
    assert look("a") == ("a", "1")
    it.now = 10.0
    assert look("a") == ("a", "1")
    assert it.calls == 1
    other = tmp_path / "other"
    other.write_text("2")
    os.replace(other, file)
    assert look("a") == ("a", "1")  # it is looked at once a second
    it.now = 11.5
    assert look("a") == ("a", "2")
    file.unlink()
    it.now = 13.0
    assert look("a") == ("a", "2")
    file.write_text("3")
    it.now = 15.0
    assert look("a") == ("a", "3")


@pytest.mark.parametrize(
    ("table", "refresh", "said"),
    [
        ({"a": 1}, 60, "pass a function that reads it"),
        (dict, 0, "refresh"),
        (dict, True, "refresh"),
        (dict, [1], "refresh"),
        (3, 60, "is not callable"),
    ],
)
def test_wrong_words_are_refused(table, refresh, said):
    stream = Topology("t").spout("rows", Items([]))
    with pytest.raises(TopologyError, match=said):
        stream.lookup(table, refresh=refresh)
