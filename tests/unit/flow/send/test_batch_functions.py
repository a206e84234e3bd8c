"""A step that only calls `json.loads` has its batches decoded at once; all others are called for each value."""

from __future__ import annotations

import functools
import json
from json import loads
from types import SimpleNamespace

import pytest

from esault.flow.send.batch_functions import LONGEST_REST, batch_function

LINES = ['{"a": 1}', "[2, 3]", "null", '"x"']


def parse(line):
    """Have text in it, as people write it."""
    return json.loads(line)


def parse_first(line, strict=True):
    return json.loads(line)


def parse_other(line):
    return json.dumps(line)


def of_another_module():
    names = {"json": SimpleNamespace(loads=str.upper)}
    return eval("lambda line: json.loads(line)", names)


@pytest.mark.parametrize("function", [json.loads, parse, lambda line: json.loads(line), lambda text: loads(text)])
def test_what_only_calls_it_is_known(function):
    found = batch_function(function)
    assert found is not None
    assert found.results(LINES) == list(map(function, LINES))


@pytest.mark.parametrize(
    "function",
    [
        parse_first,
        parse_other,
        of_another_module(),
        functools.partial(json.loads, parse_float=str),
        lambda line: json.loads(line)["a"],
        lambda line: json.loads(line, parse_int=float),
        lambda line: json.load(line),
        json.dumps,
        str,
    ],
)
def test_others_are_not(function):
    assert batch_function(function) is None


def test_a_name_that_comes_to_mean_something_else_is_followed(monkeypatch):
    found = batch_function(parse)
    assert found.results(["1"]) == [1]
    monkeypatch.setattr(json, "loads", lambda line: "other")
    assert found.results(["1"]) is None
    assert parse("1") == "other"


def test_where_it_brings_nothing_it_is_tried_more_and_more_rarely():
    found = batch_function(json.loads)
    tried = []
    for i in range(1000):
        if not found._rest:
            tried.append(i)
        assert found.results(["1,"]) is None
    assert tried[:3] == [0, 2, 6]
    assert tried[-1] - tried[-2] == LONGEST_REST + 1
    found._rest = 0
    assert found.results(["1"]) == [1]
    assert found.results(["1,"]) is None
    assert found._rest == 1
