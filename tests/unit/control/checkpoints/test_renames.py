"""A checkpoint under the names of today: what may have another name, and what happens to state that no unit takes."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from esault.control.checkpoints.completed import check_plan, renamed, without_takers
from esault.errors import UsageError
from esault.messages.checkpoint import CompletedCheckpoint, CompletedUnit, Handle, Piece
from esault.messages.splits import SplitPlace


def piece(keys=3):
    return Piece("1.state", True, keys, 10, 0)


def bolt(objects="key", keys=3, in_flight=()):
    return CompletedUnit("bolt", objects, 1, ((piece(keys),),) if keys else (), in_flight=in_flight)


LINES = CompletedUnit("spout", "sub-unit", 2, positions={0: b"p", 1: b"q"})
FILES = CompletedUnit("spout", "sub-unit", 2, splits={"a.txt": SplitPlace(b"p", False)})


def kept(handles=(), **units):
    return CompletedCheckpoint(7, "r", units, tuple(handles), topology="words")


def unit(kind="bolt", objects="key", splits=False, sinks=()):
    return SimpleNamespace(kind=kind, objects=objects, reads_splits=splits, sinks=sinks, name="", window=None)


def plan(name="words", moved=None, **units):
    moved = moved or {}
    return SimpleNamespace(
        name=name, units=units, moved=moved, chained={}, now=lambda old: moved.get(old, old),
        unknown=lambda each: f"there is no unit {each!r}; there are: {', '.join(units)}",
    )  # fmt: skip


def test_units_the_topology_and_what_sinks_prepared_have_the_names_that_are_said():
    before = kept([Handle("count", "table", 7, 1)], lines=LINES, count=bolt())
    found = renamed(before, plan("totals", lines=unit("spout"), sums=unit()), {"count": "sums", "words": "totals"})
    assert (found.topology, list(found.units), found.handles[0].unit) == ("totals", ["lines", "sums"], "sums")


def test_a_unit_that_has_the_name_of_its_topology_keeps_it():
    found = renamed(kept(words=bolt()), plan("totals", words=unit()), {"words": "totals"})
    assert (found.topology, list(found.units)) == ("totals", ["words"])


def test_what_is_said_by_hand_counts_more_than_what_the_topology_says():
    found = renamed(kept(count=bolt()), plan(moved={"count": "a"}, a=unit(), b=unit()), {"count": "b"})
    assert list(found.units) == ["b"]


def test_names_may_be_exchanged():
    before = kept(a=bolt(keys=1), b=bolt(keys=2))
    found = renamed(before, plan(a=unit(), b=unit()), {"a": "b", "b": "a"})
    assert {name: each.pieces[0].keys for name, each in found.units.items()} == {"b": 1, "a": 2}


def test_what_was_renamed_before_is_renamed_no_more():
    before = kept(sums=bolt())
    assert renamed(before, plan(sums=unit()), {"count": "sums"}) == before


@pytest.mark.parametrize(
    ("renames", "says"),
    [
        ({"cuont": "sums2"}, "checkpoint 7 has no unit 'cuont'; it has: count, most"),
        ({"count": "smus"}, "there is no unit 'smus'; there are: sums, most"),
        ({"count": "most"}, "units 'count' and 'most' of checkpoint 7 would both be 'most'"),
    ],
)
def test_names_that_are_not_there_are_refused(renames, says):
    with pytest.raises(UsageError, match=says):
        renamed(kept(count=bolt(), most=bolt()), plan(sums=unit(), most=unit()), renames)


def test_a_savepoint_may_be_one_of_a_topology_of_another_name():
    before = kept(count=bolt())
    with pytest.raises(UsageError, match="one of topology 'words', and this is 'totals'"):
        check_plan(before, plan("totals", count=unit()), {})
    check_plan(before, plan("totals", count=unit()), {}, any_topology=True)


NO_TAKERS = {
    "another name": (bolt(), {}, "no unit of that name any more .*--rename it=ITS_NAME_NOW"),
    "a spout": (bolt(), {"it": unit("spout")}, "was a bolt .* and is a spout now"),
    "another grouping": (bolt("sub-unit"), {"it": unit()}, "one object per sub-unit .* one per key now"),
    "splits": (LINES, {"it": unit("spout", splits=True)}, "read as a whole .* in splits now"),
    "no splits": (FILES, {"it": unit("spout")}, "read in splits .* as a whole now"),
}


@pytest.mark.parametrize("which", NO_TAKERS)
def test_state_that_no_unit_takes_is_refused_unless_it_may_be_let_go_which_is_said(which):
    was, units, says = NO_TAKERS[which]
    before = kept(it=was, count=bolt())
    now = plan(count=unit(), **units)
    with pytest.raises(UsageError, match=f"{says}.*--allow-dropped-state"):
        check_plan(before, now, {})
    found, told = without_takers(before, now)
    check_plan(found, now, {})
    assert list(found.units) == ["count"]
    what = "3 keys written" if was.chains else "the positions of its source"
    assert told == [f"unit 'it' of checkpoint 7 has no taker: dropped are {what}"]


def test_rows_in_flight_that_are_let_go_are_counted_too():
    _, told = without_takers(kept(it=bolt(keys=0, in_flight=(piece(2),))), plan(count=unit()))
    assert told == ["unit 'it' of checkpoint 7 has no taker: dropped are 2 parts of rows in flight"]


def test_nothing_is_let_go_where_all_is_taken():
    before = kept(count=bolt(), gone=bolt(keys=0))
    found, told = without_takers(before, plan(count=unit()))
    assert (found, told) == (before, [])


def test_rows_that_a_sink_has_to_commit_are_never_let_go():
    before = kept([Handle("count", "table", 7, 1)], count=bolt())
    found, _ = without_takers(before, plan(other=unit()))
    with pytest.raises(UsageError, match="holds rows that sink 'table' behind unit 'count' has still to commit"):
        check_plan(found, plan(other=unit()), {})
