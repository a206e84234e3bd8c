"""Routes of `shuffle`: whole batches to whom has the least to do; or rows by turns that follow from their order alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from recording_channel import RecordingChannel

from esault import shuffle
from esault.flow.channel.array_batch import ArrayBatch
from esault.flow.send.route_factory import route
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


@given(st.lists(st.integers(0, 3), min_size=1, max_size=5))
def test_a_batch_goes_whole_to_one_that_has_the_fewest_waiting(waiting):
    channels = [RecordingChannel(each) for each in waiting]
    push(made(shuffle(), channels), range(10))
    got = [number for number, each in enumerate(channels) if each.rows]
    assert len(got) == 1 and waiting[got[0]] == min(waiting)
    assert [row[0] for row in channels[got[0]].rows] == list(range(10))


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
    for number, rows in enumerate(first):
        assert [row[0] for row in rows] == [r for r in range(total) if (turn + r // TURN) % count == number]
        assert all(key == value and id == f"id{key}" for key, value, id in rows)


def test_a_restart_begins_its_turn_anew():
    channels = [RecordingChannel(), RecordingChannel()]
    each = made(shuffle(), channels, by_rows=True)
    push(each, range(100))
    each.restart(1)
    push(each, range(TURN))
    assert [len(channel.rows) for channel in channels] == [100, TURN]
