"""Names of rows that a source may give once more: how long they are known."""

from __future__ import annotations

from esault.state import row_names
from esault.state.row_names import REMEMBERED, RowNames


def told(names, given, now):
    names.note(given)
    names.cut()
    names.told(1, now)


def test_names_are_known_for_a_while_behind_the_word_that_may_have_been_lost():
    names = RowNames()
    for now, given in ((0.0, ["a"]), (1.0, ["b"]), (2.0, ["c"])):
        told(names, given, now)
    assert names.new(["a", "b", "c", "d", "d"]) == [3]
    told(names, ["e"], REMEMBERED + 1.5)
    assert names.new(["a", "b", "c"]) == [0, 1]


def test_what_was_told_last_is_known_however_long_ago_it_was():
    names = RowNames()
    told(names, ["a"], 0.0)
    assert names.new(["a"]) == []
    told(names, ["b"], 1000.0)
    assert names.new(["a", "b"]) == [0]


def test_no_more_than_so_many_are_known(monkeypatch):
    monkeypatch.setattr(row_names, "MOST", 3)
    names = RowNames()
    for number in range(6):
        told(names, [f"{number}-{n}" for n in range(2)], 0.0)
    assert len(names) <= 4 and names.new(["5-0"]) == []
