"""A grouping of the user's own: asked row by row, and held to what it may give."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from recording_channel import RecordingChannel

from esault import Grouping
from esault.errors import TopologyError
from esault.flow.channel.array_batch import ArrayBatch
from esault.flow.operators.user_error import UserError
from esault.flow.send.route import OwnRoute
from esault.flow.send.route_factory import route
from esault.routing.table import OutputTable
from esault.topology.plan import Edge


class Chosen(Grouping):
    """It gives what `gives` says of each value."""

    def __init__(self, gives):
        self.gives = gives

    def choose(self, key, value, sub_units):
        return self.gives(value)


def made(gives, count=3):
    channels = [RecordingChannel() for _ in range(count)]
    each = route("words", Edge("count", 0, Chosen(gives)), 16)
    assert type(each) is OwnRoute
    each.install(OutputTable.even(list(range(count))), dict(enumerate(channels)))
    return each, channels


@pytest.mark.parametrize("arrays", [False, True])
def test_rows_go_where_it_says_in_order(arrays):
    each, channels = made(lambda value: (value % 3, (value + 1) % 3) if value % 2 else value % 3)
    keys, ids = [f"k{value}" for value in range(9)], [f"i{value}" for value in range(9)]
    if arrays:
        each.push_arrays(None, ArrayBatch(pa.array(keys), pa.array(range(9))), ids, 0.0)
    else:
        each.push(None, keys, list(range(9)), ids, 0.0)
    for number, channel in enumerate(channels):
        wanted = [v for v in range(9) if v % 3 == number or (v % 2 and (v + 1) % 3 == number)]
        assert channel.rows == [(f"k{value}", value, f"i{value}") for value in wanted]


def test_none_of_them_is_an_answer_and_sends_nothing():
    each, channels = made(lambda value: ())
    each.push(None, ["a"], [1], None, 0.0)
    assert [channel.calls for channel in channels] == [0, 0, 0]


@pytest.mark.parametrize("gives", [3, -1, (0, 3), ("0",), 2**70, [1.0], (None,)])
def test_another_number_is_refused(gives):
    each, channels = made(lambda value: gives)
    with pytest.raises(TopologyError, match="a number from 0 to 2"):
        each.push(None, ["a"], [1], None, 0.0)
    assert not any(channel.rows for channel in channels)


@pytest.mark.parametrize("gives", [None, 1.0, "1x", np.float64(1)])
def test_an_answer_of_another_type_is_refused_in_the_same_words(gives):
    each, _ = made(lambda value: gives)
    with pytest.raises(TopologyError, match="a number from 0 to 2"):
        each.push(None, ["a"], [1], None, 0.0)


def test_a_number_of_numpy_is_a_number():
    each, channels = made(lambda value: np.int64(value % 3))
    each.push(None, ["a", "b"], [1, 2], None, 0.0)
    assert [len(channel.rows) for channel in channels] == [0, 1, 1]


def test_an_error_in_it_names_unit_grouping_and_key():
    each, _ = made(lambda value: 1 // value)
    with pytest.raises(UserError, match=r"'words'.*choose.*'count'.*key 'a'.*ZeroDivisionError"):
        each.push(None, ["a"], [0], None, 0.0)
