"""What a complete checkpoint says of itself."""

from __future__ import annotations

import pytest

from esault.messages.checkpoint import CompletedCheckpoint, CompletedUnit, Piece


def piece(size):
    return Piece(f"piece of {size}", True, 1, size, 0)


def unit(kind="bolt", parallelism=1, **fields):
    return CompletedUnit(kind, "key", parallelism, **fields)


def complete(**units):
    return CompletedCheckpoint(3, "run", units)


def test_it_is_over_when_all_units_had_come_to_their_end():
    ended, going = unit(finished=True), unit()
    assert complete(a=ended, b=ended).over
    assert not complete(a=ended, b=going).over
    assert not complete().over


@pytest.mark.parametrize(
    ("fields", "apart"),
    [
        ({}, False),
        ({"chains": ((), ())}, False),
        ({"chains": ((), (piece(1),))}, True),
        ({"in_flight": (piece(1),)}, True),
        ({"parallelism": 2}, True),
        ({"parallelism": 2, "kind": "spout"}, False),
    ],
)
def test_bolts_with_state_rows_or_several_processes_are_not_chained_where_a_run_goes_on(fields, apart):
    assert complete(a=unit(**fields), b=unit()).apart == ({"a"} if apart else set())


def test_it_added_the_newest_piece_of_each_chain_and_holds_them_all():
    held = unit(chains=((piece(100), piece(1)), (piece(200),), ()), in_flight=(piece(5),))
    assert [each.size for each in held.pieces] == [100, 1, 200, 5]
    both = complete(a=held, b=held, c=unit())
    assert (both.total_size, both.size) == (612, 412)
