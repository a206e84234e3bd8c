"""Routes of `shuffle`: rows to those with the least to do; or by turns that follow from their order alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recording_channel import RecordingChannel

from esault import shuffle
from esault.flow.channel.array_batch import ArrayBatch
from esault.flow.channel.lineage import Lineage
from esault.flow.send.route_factory import route
from esault.flow.send.unprocessed import UnprocessedRows
from esault.routing.table import OutputTable
from esault.topology.plan import Edge

TURN = 256


def made(grouping, channels, by_rows=False):
    table = OutputTable.even(list(range(len(channels))))
    each = route("lines", Edge("words", 0, grouping), 16, by_rows)
    each.install(table, dict(enumerate(channels)))
    return each


def push(each, rows, ids=None):
    each.push(None, tuple(rows), tuple(rows), ids, 0.0)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=5), st.integers(1, 40))
def test_rows_that_come_at_once_are_divided_among_those_with_the_fewest_frames_waiting(waiting, many):
    channels = [RecordingChannel(each) for each in waiting]
    push(made(shuffle(), channels), range(many), [f"id{row}" for row in range(many)])
    least = [channel for channel, frames in zip(channels, waiting) if frames == min(waiting)]
    assert sorted(row for channel in least for row in channel.rows) == [(i, i, f"id{i}") for i in range(many)]
    sizes = [len(channel.rows) for channel in least]
    assert max(sizes) - min(sizes) <= 1
    assert max(channel.calls for channel in channels) == 1
    assert all(channel.rows == sorted(channel.rows) for channel in channels)


def test_a_hundred_rows_of_one_call_keep_all_sub_units_busy():
    channels = [RecordingChannel() for _ in range(12)]
    each = made(shuffle(), channels)
    for number in range(6):
        push(each, range(100 * number, 100 * number + 100))
    assert all(48 <= len(channel.rows) <= 52 for channel in channels)


def pieces(each, channels, now, rows=100):
    before = [channel.calls for channel in channels]
    each.push(None, tuple(range(rows)), tuple(range(rows)), None, now)
    return sum(channel.calls - was for channel, was in zip(channels, before))


def test_pieces_are_few_where_much_comes_and_more_again_later():
    channels = [RecordingChannel() for _ in range(9)]
    each = made(shuffle(), channels)
    made_at_once = [pieces(each, channels, 5.0) for _ in range(1000)]
    assert made_at_once[:32] == [9] * 32 and made_at_once[32:] == [1] * 968  # 256 pieces besides one for each
    assert pieces(each, channels, 4.0) == 1  # a clock that was set back
    assert pieces(each, channels, 4.0035) == 4
    assert [pieces(each, channels, 5.0) for _ in range(40)] == [9] * 32 + [1] * 8


def test_however_little_comes_a_row_is_no_piece():
    channels = [RecordingChannel() for _ in range(9)]
    each = made(shuffle(), channels)
    assert [pieces(each, channels, 0.0, rows) for rows in (1, 2, 5, 20)] == [1, 2, 5, 9]


@given(st.lists(st.integers(0, 50), min_size=2, max_size=8), st.integers(2, 60))
def test_what_waits_afterwards_is_as_even_as_it_can_be(waiting, many):
    channels = [RecordingChannel() for _ in waiting]
    for channel, rows in zip(channels, waiting):
        channel.unprocessed = rows
    each = made(shuffle(), channels)
    each.unprocessed = UnprocessedRows(7)
    each.push(Lineage((7, 1, 0), 0.0), tuple(range(many)), tuple(range(many)), None, 0.0)
    assert [channel.unprocessed - was for channel, was in zip(channels, waiting)] == [len(c.rows) for c in channels]
    if many >= len(channels):  # all of them may get some
        level = max(channel.unprocessed for channel in channels if channel.rows)
        assert all(channel.unprocessed >= level - 1 for channel in channels)
    each.unprocessed.processed(1)
    assert [channel.unprocessed for channel in channels] == waiting


def test_arrays_go_whole():
    channels = [RecordingChannel() for _ in range(3)]
    each = made(shuffle(), channels)
    each.push_arrays(Lineage((1, 1, 0), 0.0), ArrayBatch(tuple(range(50)), tuple(range(50))), None, 0.0)
    assert sorted(len(channel.rows) for channel in channels) == [0, 0, 50]


@given(st.integers(1, 6), st.integers(1, 4))
def test_equal_ones_take_turns(count, rounds):
    channels = [RecordingChannel() for _ in range(count)]
    each = made(shuffle(), channels)
    for number in range(count * rounds):
        push(each, [number])
    assert {len(channel.rows) for channel in channels} == {rounds}


cuts = st.lists(st.integers(0, 700), max_size=8)


def routed(sizes, total, count, turn, arrays):
    channels = [RecordingChannel() for _ in range(count)]
    each = made(shuffle(), channels, by_rows=True)
    each.restart(turn)
    at = 0
    for size in [*sizes, total]:
        part = range(at, min(at + size, total))
        at = max(at, part.stop)
        ids = tuple(f"id{row}" for row in part)
        if not part:
            continue
        if arrays:
            each.push_arrays(None, ArrayBatch(tuple(part), tuple(part)), ids, 0.0)
        else:
            push(each, part, ids)
    return [channel.rows for channel in channels]


@given(cuts, cuts, st.integers(1, 1500), st.integers(1, 4), st.integers(0, 9))
def test_rows_by_turns_go_the_same_way_however_they_come(one, two, total, count, turn):
    first = routed(one, total, count, turn, False)
    assert first == routed(two, total, count, turn, False)
    assert sorted(row[0] for rows in first for row in rows) == list(range(total))
    assert first[turn % count][0][0] == 0
    for rows in first:
        assert all(key == value and id == f"id{key}" for key, value, id in rows)
        assert rows == sorted(rows)


@pytest.mark.parametrize("count", [2, 5, 12, 40])
@pytest.mark.parametrize("total", [1, 7, 60, 600, 6000])
def test_few_rows_by_turns_are_shared_by_all(count, total):
    sizes = [len(rows) for rows in routed([], total, count, 3, False)]
    assert max(sizes) <= 1.5 * total / count + 1


def test_many_rows_by_turns_go_in_long_turns():
    channels = [RecordingChannel() for _ in range(4)]
    each = made(shuffle(), channels, by_rows=True)
    push(each, range(100_000))
    assert sum(channel.calls for channel in channels) < 100_000 / TURN + 150


def test_a_restart_begins_its_turn_anew():
    channels = [RecordingChannel(), RecordingChannel()]
    each = made(shuffle(), channels, by_rows=True)
    push(each, range(100_000))
    each.restart(1)
    before = [len(channel.rows) for channel in channels]
    push(each, range(3))
    assert [len(channel.rows) - was for channel, was in zip(channels, before)] == [1, 2]
