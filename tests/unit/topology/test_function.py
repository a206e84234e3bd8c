from __future__ import annotations

import functools
import re

import pytest

from esault.errors import TopologyError
from esault.topology.bolt import BatchBolt, Bolt
from esault.topology.function import check_function, name_of


class Split(Bolt):
    def process(self, key, value):
        self.emit(key, value)


class Batches(BatchBolt):
    def process_batch(self, rows):
        self.emit_batch(rows)


class Adder:
    def __call__(self, value):
        return value + 1


class AsyncAdder:
    async def __call__(self, value):
        return value + 1


async def eventually(value):
    return value


async def eventually_many(value):
    yield value


def many(value):
    yield value
    yield value


def pair(key, value):
    return value


@pytest.mark.parametrize(
    "function",
    [len, int, str.lower, print, Adder(), lambda v: v, functools.partial(pair, 1), "".join, {}.get, list[int]],
)
def test_what_can_be_called_with_a_value_is_accepted(function):
    check_function("unit 'lines', map", function, takes=("the value",))


def test_a_generator_function_is_accepted_where_it_may_be():
    check_function("unit 'lines', flat_map", many, takes=("the value",), generator=True)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (5, "unit 'lines', map: 5 (int) is not callable; pass a function"),
        (None, "None (NoneType) is not callable"),
        (Split, "Split is a bolt; write .bolt(name, Split, grouping=...)"),
        (Split(), "Split is a bolt; write .bolt(name, Split, grouping=...)"),
        (Batches, "Batches is a bolt"),
        (eventually, "eventually is async, which a function step cannot be; write a plain def"),
        (eventually_many, "eventually_many is async"),
        (functools.partial(eventually), "partial(eventually, ...) is async"),
        (AsyncAdder(), "AsyncAdder is async"),
        (many, "many yields; return one value, or use flat_map for several"),
        (pair, "pair must take 1 argument: the value"),
        (lambda: 1, "the lambda must take 1 argument: the value"),
    ],
)
def test_other_things_are_refused_with_what_to_do(function, said):
    with pytest.raises(TopologyError, match=re.escape(said)):
        check_function("unit 'lines', map", function, takes=("the value",))


def test_a_function_of_two_arguments_can_be_asked_for():
    check_function("unit 'count'", pair, takes=("the total", "the value"))
    with pytest.raises(TopologyError, match="unit 'count': many must take 2 arguments: the total, the value"):
        check_function("unit 'count'", many, takes=("the total", "the value"), generator=True)


def test_things_are_called_what_the_user_calls_them():
    names = [name_of(thing) for thing in (Split, many, functools.partial(pair, 1), Adder(), lambda: 1)]
    assert names == ["Split", "many", "partial(pair, ...)", "Adder", "the lambda"]
