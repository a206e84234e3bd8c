"""Readers of a source in splits: when there are to be more, and when fewer."""

from __future__ import annotations

import pytest

from esault.elasticity.reader_growth import QUIET, WINDOW, ReaderGrowth, ReaderLoad

EVERY = 0.25


def looked(seconds, *, busy=1.0, held=0.0, spare=1.0, width=1, splits=8, ended=lambda at: 0, bounded=True, **limits):
    """What was found within so many seconds, with when; each reader is busy and held back for these shares of its time."""
    growth = ReaderGrowth(limits.get("least", 1), limits.get("most"))
    for look in range(int(seconds / EVERY) + 1):
        at = EVERY * look
        left = splits - ended(at)
        load = ReaderLoad(at, width, busy * at * width, held * at * width, left, ended(at), bounded)
        if found := growth.look(load, spare):
            return at, found[0]
    return None


def test_a_full_reader_beside_an_idle_core_gets_another_after_a_second():
    assert looked(5) == (WINDOW, 2)


@pytest.mark.parametrize(
    "not_so",
    [
        {"busy": 0.8},
        {"held": 0.3},
        {"spare": 0.5},
        {"splits": 1},
        {"most": 1},
        {"width": 4, "splits": 4},
    ],
)
def test_each_of_these_is_a_reason_against_it(not_so):
    assert looked(60, **not_so) is None


def test_as_many_as_cores_and_splits_bear_and_no_more_than_twice_as_many():
    assert looked(5, spare=6.0) == (WINDOW, 2)
    assert looked(5, spare=6.0, width=4, splits=30) == (WINDOW, 8)
    assert looked(5, spare=1.7, width=4, splits=30) == (WINDOW, 6)
    assert looked(5, spare=6.0, width=4, splits=5) == (WINDOW, 5)
    assert looked(5, spare=6.0, width=4, splits=30, most=6) == (WINDOW, 6)


def test_what_is_soon_read_is_not_worth_a_process():
    # Ten splits a second, and six are left when it is looked at.
    assert looked(5, splits=16, ended=lambda at: min(15, int(10 * at))) is None
    assert looked(5, splits=160, ended=lambda at: min(160, int(10 * at))) == (WINDOW, 2)
    # Of what gets others for ever it is not known when it ends.
    assert looked(5, splits=16, ended=lambda at: min(15, int(10 * at)), bounded=False) == (WINDOW, 2)


def test_where_the_system_tells_nothing_nothing_is_done():
    growth = ReaderGrowth(1, None)
    assert all(growth.look(ReaderLoad(at, 1, None, 0.0, 8, 0, True), 4.0) is None for at in range(10))


def test_what_is_not_needed_for_long_goes_where_the_source_has_no_end():
    at, wanted = looked(60, busy=0.2, width=3, bounded=False)
    assert wanted == 2
    assert at >= QUIET
    assert looked(60, busy=0.2, width=3, bounded=False, least=3) is None
    assert looked(60, busy=0.2, width=3) is None
    # Two would have 2.4 cores' work.
    assert looked(60, busy=0.8, width=3, bounded=False) is None


def test_readers_that_count_anew_are_looked_at_anew():
    growth = ReaderGrowth(1, None)
    loads = [ReaderLoad(at, 2, cpu, 0.0, 8, 0, False) for at, cpu in ((0.0, 40.0), (1.0, 0.5), (1.5, 1.5))]
    assert [growth.look(load, 4.0) for load in loads] == [None] * 3
