from __future__ import annotations

from itertools import count, islice

import pytest

from esault.errors import SourceError, TopologyError
from esault.sources.items import Items
from esault.topology.context import Context
from esault.topology.spout import EndOfStream

ROWS = [(i, str(i)) for i in range(5)]


def opened(rows, part=0, parts=1, position=None, **arguments):
    spout = Items(rows, **arguments)
    spout.check()
    spout.open(Context("items", part=part, parts=parts))
    if position is not None:
        spout.seek(position)
    return spout


def rest(spout, limit=2):
    rows = []
    while True:
        try:
            rows += spout.read(limit)
        except EndOfStream:
            return rows


def test_the_pairs_of_a_list_come_in_order():
    spout = opened(ROWS)
    assert rest(spout) == ROWS
    assert spout.progress() == (5, 5)
    with pytest.raises(EndOfStream):
        spout.read(1)


def test_a_function_makes_the_pairs_anew_each_time():
    calls = []

    def make():
        calls.append(1)
        return ((i, i) for i in range(2))

    spout = Items(make, repeat=2)
    spout.check()
    assert not calls
    spout.open(Context("items"))
    assert rest(spout) == [(0, 0), (1, 1)] * 2
    assert len(calls) == 2
    assert spout.progress() is None


def test_they_can_be_repeated_also_for_ever():
    assert rest(opened(ROWS, repeat=3)) == ROWS * 3
    assert opened(ROWS, repeat=3).progress() == (0, 15)
    spout = opened(ROWS, repeat=None)
    rows = []
    while len(rows) < 100:
        rows += spout.read(7)
    assert rows == (ROWS * 20)[: len(rows)]
    assert spout.progress() is None
    endless = opened(lambda: ((i, i) for i in count()))
    assert len(endless.read(1000)) == 1000


@pytest.mark.parametrize("rows", [[], list])
@pytest.mark.parametrize("repeat", [1, 10**12, None])
def test_nothing_ends_at_once_however_often_it_is_repeated(rows, repeat):
    with pytest.raises(EndOfStream):
        opened(rows, repeat=repeat).read(1)


def test_a_position_far_on_is_found_at_once():
    spout = opened(ROWS, repeat=None, position=10**15 + 3)
    assert spout.read(10) == ROWS[3:]
    assert spout.position() == 10**15 + 5


def test_a_position_that_is_not_there_any_more_is_refused():
    for rows in (ROWS, lambda: ROWS):
        with pytest.raises(
            SourceError, match="Items: an earlier run has read 6 pairs, and now there are only 5; give the"
        ):
            opened(rows, position=6)
        assert rest(opened(rows, position=5)) == []


def test_parts_take_turns_pair_by_pair():
    for rows in (ROWS, lambda: iter(ROWS)):
        assert [rest(opened(rows, part=part, parts=3, repeat=2)) for part in range(3)] == [
            [ROWS[0], ROWS[3]] * 2,
            [ROWS[1], ROWS[4]] * 2,
            [ROWS[2]] * 2,
        ]


def test_a_row_that_is_no_pair_is_named():
    with pytest.raises(SourceError, match=r"Items: row 1 is 'ab'; write each row as \(key, value\)"):
        Items([(1, 2), "ab"]).check()
    with pytest.raises(SourceError, match=r"Items: row 0 is \(1, 2, 3\)"):
        Items([(1, 2, 3)]).check()


def test_a_function_that_returns_nothing_to_iterate_is_named():
    with pytest.raises(SourceError, match=r"Items: the function returned None; it must return \(key, value\) pairs"):
        opened(lambda: None).read(1)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({1: 2}, r"Items: a dict is not a list of pairs; write Items\(list\(pairs\.items\(\)\)\)"),
        ("ab", "Items: str is neither a list of"),
        (3, "Items: int is neither a list of .* that returns one$"),
        (iter(ROWS), "Items: list_iterator is neither .* what can be iterated only once must be made by a function"),
    ],
)
def test_what_is_no_list_is_refused_with_the_remedy(rows, message):
    with pytest.raises(TopologyError, match=message):
        Items(rows)


@pytest.mark.parametrize("repeat", [0, -1, 1.5, True])
def test_a_wrong_repeat_is_refused(repeat):
    with pytest.raises(TopologyError, match="Items: repeat="):
        Items(ROWS, repeat=repeat)


def test_seeking_costs_no_more_memory_than_a_piece():
    spout = opened(lambda: ((i, i) for i in islice(count(), 100_000)), position=99_999)
    assert rest(spout) == [(99_999, 99_999)]


def test_a_generator_is_closed_with_the_spout():
    done = []

    def pairs():
        try:
            yield from ROWS
        finally:
            done.append(True)

    spout = opened(pairs)
    spout.read(2)
    spout.close()
    spout.close()
    assert done == [True]
