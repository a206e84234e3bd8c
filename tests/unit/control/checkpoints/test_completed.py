"""What a complete checkpoint consists of, and which topologies go on from it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from one_unit import OneUnit, unit_plan

from esault.control.checkpoints.checkpoints import Cut
from esault.control.checkpoints.completed import check_plan, completed_of, table_like, widths, without_takers
from esault.control.units.subscales import SUBSCALE_KEYS
from esault.errors import UsageError
from esault.messages.change import RangesHeld
from esault.messages.checkpoint import CompletedCheckpoint, CompletedUnit, Handle, Piece, Snapped
from esault.routing.ring import RING
from esault.routing.table import OutputTable
from esault.topology.plan import Plan

PIECE = Piece("p", True, 3, 30, 0)


def live(name, table=None, **options):
    plan = unit_plan(name, **options)
    return SimpleNamespace(
        plan=plan, table=table, planned=table, width=2, parallelism=2, sources={}, splits=None, name=name
    )


def checkpoint(handles=(), topology="t", **units):
    return CompletedCheckpoint(7, "run", units, tuple(handles), 9, 0.0, 1.0, topology)


def plan(**units):
    return Plan("t", {name: unit_plan(name, **options) for name, options in units.items()})


def bolt(**fields):
    return CompletedUnit(**{"kind": "bolt", "objects": "key", "parallelism": 2, **fields})


def test_sub_units_are_numbered_by_part_and_the_table_names_them_so():
    table = OutputTable.even([12, 5])
    cut = Cut(3, 10.0, places={12: 0, 5: 1, 1: 4, 2: 0}, leaving={9}, completed_at=11.0)
    cut.parts = {
        "count": [
            Snapped(12, 3, piece=PIECE, finished=True, in_flight=PIECE),
            Snapped(5, 3, finished=True),
            Snapped(9, 3),  # leaves, and has not finished
        ],
        "read": [Snapped(1, 3, position=b"one"), Snapped(2, 3, position=b"two")],
    }
    units = {"read": live("read", kind="spout"), "count": live("count", table)}
    units["read"].sources = {0: 2, 4: 1}
    made = completed_of(cut, {"count": {12: [PIECE]}}, units, "run", 20, "t", True)
    count, read = made.units["count"], made.units["read"]
    assert count.chains == ((PIECE,),)
    assert count.table == ((0, 0), (RING // 2, 1))
    assert count.finished
    assert count.in_flight == (PIECE,)
    assert count.ranges == ()
    assert (read.positions, read.sources, read.table) == ({4: b"one", 0: b"two"}, {0: 2, 4: 1}, ())
    assert not read.finished
    assert (made.number, made.begun_at, made.completed_at, made.next_incarnation) == (3, 10.0, 11.0, 20)
    assert (
        table_like(count.table, [100, 200]).snapshot()[1]
        == table_like(((0, 0), (RING // 2, 1)), [100, 200]).snapshot()[1]
    )
    assert table_like(count.table, [100, 200]).owners() == [100, 200]


@pytest.mark.parametrize("kind", ["split", "merge"])
def test_in_the_midst_of_a_change_it_has_the_table_that_was_asked_for(kind):
    """A run that goes on from there would stay as uneven as the change was far, and cut where its subscales are."""
    one = OneUnit(timers=True).running()
    one.has_keys(2 * 4 * SUBSCALE_KEYS)
    getattr(one.unit, kind)(2, one.now)
    for new in [i for i, record in one.unit.subs.items() if record.built is None]:
        one.newcomer(new)
    one.say(*(RangesHeld(new, one.unit.change.version) for new in set(one.unit.change.waiting)))
    one.move_on()
    after = one.unit.change.final
    cut = Cut(3, 10.0, places=dict.fromkeys(one.unit.subs, 0))
    cut.parts = {"count": [Snapped(i, 3, piece=PIECE) for i in one.unit.subs]}
    made = completed_of(cut, {"count": {i: [PIECE] for i in one.unit.subs}}, {"count": one.unit}, "run", 20, "t", True)
    count = made.units["count"]
    assert (count.parallelism, len(count.table)) == (len(after.owners()), len(after)) != (2, len(one.unit.table))
    names = after.owners()
    assert [(start, names[number]) for start, number in count.table] == list(after.snapshot()[1])
    # Who wrote which state is as it is now.
    assert count.ranges == tuple(tuple(one.unit.table.ranges(i)) for i in one.unit.subs)


def test_nothing_that_stays_means_nothing_that_has_finished():
    cut = Cut(3, 10.0, places={9: 0}, leaving={9})
    cut.parts = {"count": [Snapped(9, 3, finished=True)]}
    made = completed_of(cut, {}, {"count": live("count", OutputTable.even([5]))}, "run", 20, "t", True)
    assert not made.units["count"].finished


def test_a_sink_that_commits_for_the_whole_run_gets_all_that_was_prepared_since_its_last_commit():
    cut = Cut(6, 10.0, places={1: 0})
    cut.parts = {"count": [Snapped(1, 6, handles={n: {"all": f"all {n}", "own": f"own {n}"} for n in (4, 5, 6)})]}
    units = {"count": live("count", OutputTable.even([1]))}
    made = completed_of(cut, {}, units, "run", 20, "t", True, as_one=("all",), before=4)
    assert sorted(made.handles, key=str) == sorted(
        [
            *(Handle("count", "own", n, f"own {n}") for n in (4, 5, 6)),
            *(Handle("count", "all", 6, f"all {n}") for n in (5, 6)),
        ],
        key=str,
    )


def test_ranges_are_told_where_a_unit_keeps_its_watermark():
    table = OutputTable.even([1, 2])
    unit = live("count", table)
    unit.plan = SimpleNamespace(kind="bolt", objects="key", keeps_watermark=True, window=None)
    cut = Cut(6, 10.0, places={1: 0, 2: 1})
    cut.parts = {"count": [Snapped(1, 6, piece=PIECE), Snapped(2, 6, piece=PIECE)]}
    made = completed_of(cut, {"count": {1: [PIECE], 2: [PIECE]}}, {"count": unit}, "run", 20, "t", True)
    assert made.units["count"].ranges == (tuple(table.ranges(1)), tuple(table.ranges(2)))


def test_units_have_as_many_sub_units_as_they_had_as_far_as_the_topology_allows_it():
    kept = checkpoint(a=bolt(parallelism=5), b=bolt(parallelism=5), c=bolt(parallelism=3), gone=bolt())
    assert widths(kept, plan(a={"max_parallelism": 4}, b={"max_parallelism": None}, c={"max_parallelism": 4})) == {
        "a": 4,
        "b": 5,
        "c": 3,
    }
    read = CompletedUnit("spout", "part", 6)
    assert widths(checkpoint(r=read), plan(r={"kind": "spout", "max_parallelism": 2})) == {"r": 6}


GONE = "and there is no unit of that name any more"


@pytest.mark.parametrize(
    ("unit", "options", "why"),
    [
        (bolt(chains=((PIECE,),)), None, GONE),
        (bolt(in_flight=(PIECE,)), None, GONE),
        (CompletedUnit("spout", "part", 1, positions={0: b"x"}), None, GONE),
        (bolt(), {"kind": "spout"}, "was a bolt in checkpoint 7, and is a spout now"),
        (
            bolt(chains=((PIECE,),), objects="sub-unit"),
            {},
            "one object per sub-unit in checkpoint 7, and has one per key",
        ),
        (bolt(chains=((PIECE,),)), {}, None),
        (bolt(objects="sub-unit"), {}, None),  # there is no state
        (bolt(), None, None),
        (CompletedUnit("spout", "part", 1, positions={0: b"x"}), {"kind": "spout"}, None),
    ],
)
def test_state_has_a_taker_or_it_is_said_why_not_and_what_would_be_dropped(unit, options, why):
    kept = checkpoint(count=unit)
    now = plan(other={}, **({} if options is None else {"count": options}))
    left, told = without_takers(kept, now)
    if why is None:
        check_plan(kept, now, {})
        assert (set(left.units), told) == ({"count"}, [])
    else:
        with pytest.raises(UsageError, match=why):
            check_plan(kept, now, {})
        assert (left.units, len(told)) == ({}, 1)
        check_plan(left, now, {})


def test_what_is_dropped_is_counted():
    unit = bolt(chains=((PIECE, replace(PIECE, keys=4)), (PIECE,)), in_flight=(replace(PIECE, keys=2),))
    _, told = without_takers(checkpoint(gone=unit), plan(other={}))
    assert told == ["unit 'gone' of checkpoint 7 has no taker: dropped are 10 keys written, 2 parts of rows in flight"]
    spout = CompletedUnit("spout", "part", 1, positions={0: b"x"})
    _, told = without_takers(checkpoint(gone=spout), plan(other={}))
    assert told == ["unit 'gone' of checkpoint 7 has no taker: dropped are the positions of its source"]


def test_of_a_unit_without_state_it_is_said_that_nothing_is_dropped():
    left, told = without_takers(checkpoint(it=bolt()), plan(it={"kind": "spout"}))
    assert told == ["unit 'it' of checkpoint 7 has no taker: it had no state, so nothing is dropped"]
    assert left.units == {}


def test_a_topology_of_another_name_goes_on_only_where_the_checkpoint_was_chosen_by_hand():
    kept = checkpoint(topology="was", count=bolt())
    with pytest.raises(UsageError, match=r"one of topology 'was', and this is 't'.*begin anew with --restart"):
        check_plan(kept, plan(count={}), {})
    check_plan(kept, plan(count={}), {}, any_topology=True)


def test_positions_hold_for_the_number_of_readers_that_had_them():
    kept = checkpoint(read=CompletedUnit("spout", "part", 2, positions={0: b"x", 1: b"y"}))
    now = plan(read={"kind": "spout"})
    check_plan(kept, now, {"read": 2})
    with pytest.raises(UsageError, match="read by 2 sub-units in checkpoint 7.*cannot go on with 3"):
        check_plan(kept, now, {"read": 3})
    check_plan(checkpoint(read=CompletedUnit("spout", "part", 2)), now, {"read": 3})


def test_rows_that_a_sink_has_still_to_commit_need_that_sink():
    kept = checkpoint([Handle("count", "out", 7, "rows"), Handle("count", "none", 7, None)], count=bolt())
    with pytest.raises(UsageError, match="rows that sink 'out' behind unit 'count' has still to commit"):
        check_plan(kept, plan(count={}), {})
    check_plan(replace(kept, handles=kept.handles[1:]), plan(count={}), {})
