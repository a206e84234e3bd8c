"""What is not processed is counted by channel, and shuffle() sends to where the least of it is."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.flow.channel.lineage import Lineage
from esault.flow.send.shuffle_route import ShuffleRoute
from esault.flow.send.unprocessed import UnprocessedRows
from esault.routing.table import OutputTable
from esault.topology.grouping import shuffle
from esault.topology.plan import Edge

OWN = 7


class Channel:
    """Keeps how many rows it was given."""

    def __init__(self):
        self.queue, self.unprocessed, self.rows = [], 0, 0

    def add(self, lineage, input, keys, values, ids, now):
        self.rows += len(keys)


def route(many, counts=True):
    made = ShuffleRoute("unit", Edge("calls", 0, shuffle()), 10)
    if counts:
        made.unprocessed = UnprocessedRows(OWN)
    channels = {i: Channel() for i in range(1, many + 1)}
    made.install(OutputTable.even(list(channels)), channels)
    return made, channels


def push(made, number, rows=1, incarnation=OWN):
    made.push(Lineage((incarnation, number, 0), 0.0), ("k",) * rows, (1,) * rows, None, 0.0)


def test_who_is_slow_gets_less_and_who_answers_gets_more():
    made, channels = route(3)
    slow = []
    for number in range(300):
        was = channels[1].rows
        push(made, number)
        if channels[1].rows > was:
            slow.append(number)
        else:
            made.unprocessed.processed(number)
    assert len(slow) == channels[1].rows == channels[1].unprocessed == 1
    made.unprocessed.processed(slow[0])
    assert channels[1].unprocessed == 0


def test_equal_ones_get_the_same_in_turn():
    made, channels = route(4)
    for number in range(400):
        push(made, number)
        made.unprocessed.processed(number)
    assert [each.rows for each in channels.values()] == [100] * 4


def test_a_socket_that_takes_nothing_comes_before_what_is_counted():
    made, channels = route(2)
    channels[1].queue.append(b"frame")
    for number in range(10):
        push(made, number)
    assert channels[1].rows == 0


def test_roots_of_others_and_one_sub_unit_alone_are_not_counted():
    made, channels = route(2)
    for number in range(10):
        push(made, number, incarnation=OWN + 1)
    assert [(each.rows, each.unprocessed) for each in channels.values()] == [(5, 0)] * 2
    made, channels = route(1)
    push(made, 1)
    assert channels[1].unprocessed == 0
    made, channels = route(2, counts=False)
    push(made, 1)
    assert {each.unprocessed for each in channels.values()} == {0}


def test_a_replay_counts_until_the_root_is_processed_and_a_second_answer_changes_nothing():
    made, channels = route(2)
    push(made, 1, rows=5)
    push(made, 1, rows=5)
    assert sum(each.unprocessed for each in channels.values()) == 10
    for _ in range(2):
        made.unprocessed.processed(1)
        assert {each.unprocessed for each in channels.values()} == {0}


def test_after_a_growth_all_count_as_having_the_same():
    made, channels = route(2)
    for number in range(60):
        push(made, number)
    grown = {**channels, 3: Channel(), 4: Channel()}
    made.install(OutputTable.even(list(grown)), grown)
    assert [each.unprocessed for each in grown.values()] == [15] * 4
    for number in range(60):
        made.unprocessed.processed(number)
    assert [each.unprocessed for each in grown.values()] == [0] * 4


@pytest.mark.parametrize("fewer", [{1: "stays"}, {1: "stays", 9: "other"}])
def test_where_one_leaves_nothing_is_shared(fewer):
    made, channels = route(3)
    for number in range(9):
        push(made, number)
    left = {i: channels.get(i, Channel()) for i in fewer}
    made.install(OutputTable.even(list(left)), left)
    assert [each.unprocessed for each in left.values()] == [3, *[0] * (len(left) - 1)]


@given(
    st.lists(st.tuples(st.sampled_from(["push", "done", "grow"]), st.integers(1, 9)), max_size=60), st.integers(0, 9)
)
def test_counts_are_those_of_open_roots_whatever_happens(steps, seed):
    made, channels = route(2)
    order, open_rows = random.Random(seed), {}
    for at, (what, many) in enumerate(steps):
        if what == "push":
            push(made, at, many)
            open_rows[at] = many
        elif what == "done" and open_rows:
            number = order.choice(list(open_rows))
            made.unprocessed.processed(number)
            del open_rows[number]
        elif what == "grow" and len(channels) < 6:
            channels = {**channels, len(channels) + 1: Channel()}
            made.install(OutputTable.even(list(channels)), channels)
        assert sum(each.unprocessed for each in channels.values()) == sum(open_rows.values())
        assert all(each.unprocessed >= 0 for each in channels.values())


def test_arrays_are_counted_as_rows_are():
    made, channels = route(2)
    sent = []
    made._send = lambda numbers, *rest: sent.extend(numbers)
    for number in range(4):
        made.push_arrays(Lineage((OWN, number, 0), 0.0), SimpleNamespace(keys=[1, 2, 3]), None, 0.0)
    assert sorted(sent) == [0, 0, 1, 1]
    assert [each.unprocessed for each in channels.values()] == [6, 6]
