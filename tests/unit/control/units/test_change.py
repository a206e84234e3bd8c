"""A change that is on its way: who gives, who gets, and who takes a dead one's place in it."""

from __future__ import annotations

from esault.control.units.change import Change
from esault.routing.table import Move, OutputTable


def change(**fields):
    moves = [Move(0, 9, 1, 3), Move(10, 19, 2, 3), Move(20, 29, 1, 4)]
    table = OutputTable.even([1, 2, 3, 4])
    table.version = 6
    return Change(7, "rescale", table, moves, {3, 4}, at=10.0, **fields)


def test_its_messages_name_the_version_to_come_and_its_owners_follow_from_the_moves():
    made = change()
    assert made.version == 7
    assert (made.old_owners, made.new_owners) == ({1, 2}, {3, 4})
    assert made.old_owners_of(3) == {1, 2}
    assert made.old_owners_of(4) == {1}
    assert made.old_owners_of(1) == set()


def test_a_successor_takes_the_place_of_the_dead_wherever_it_stood():
    made = change(waiting={3, 4}, giving={1, 2})
    made.rename(3, 9)
    assert (made.news, made.waiting, made.giving) == ({4, 9}, {4, 9}, {1, 2})
    assert made.moves == [Move(0, 9, 1, 9), Move(10, 19, 2, 9), Move(20, 29, 1, 4)]
    made.waiting = {4}
    made.rename(1, 8)
    assert (made.news, made.waiting, made.giving) == ({4, 9}, {4}, {2, 8})
    assert made.old_owners_of(4) == {8}


def test_its_record_says_how_long_it_took_and_how_long_of_that_nothing_waited():
    made = change(reason="load", policy="auto", before=2, moved_keys=5, moved_bytes=50, held=0.25)
    dropped = made.record("count", 13.0, 2, dropped="count/3 died")
    assert (dropped.seconds, dropped.prepared, dropped.dropped) == (3.0, 3.0, "count/3 died")
    made.published_at = 11.0
    record = made.record("count", 14.0, 4)
    assert (record.seconds, record.prepared, record.dropped) == (4.0, 1.0, "")
    assert (record.at, record.unit, record.kind, record.before, record.after, record.id) == (
        10.0,
        "count",
        "rescale",
        2,
        4,
        7,
    )
    assert (record.reason, record.policy) == ("load", "auto")
    assert (record.moved_keys, record.moved_bytes, record.held) == (5, 50, 0.25)
