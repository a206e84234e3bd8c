"""The record of a dead letter: exact where it can be sent again, and with one name wherever it is written."""

from __future__ import annotations

import base64
import json

import pytest

from esault import Context
from esault.flow.operators.dead_letter import dead_letter, rows_of
from esault.flow.operators.user_error import say_hook
from esault.payload.codec import Codec

CODEC = Codec()


def record(now=5.0, **given):
    context = Context("count", 3, run="r", lineage="l", now=lambda: now, epoch=2)
    context.at_checkpoint(8)
    error = given.pop("error", ZeroDivisionError("by zero"))
    given = {"value": 1, "number": 0, "at": "input:0", "rows": [("k", 1)], **given}
    return dead_letter(context, CODEC, error, given.pop("hook", "process"), given.pop("key", "k"), **given)


@pytest.mark.parametrize(
    ("hook", "value", "rows"),
    [
        ("process", 1, [("k", 1)]),
        ("process_broadcast", 1, [("k", 1)]),
        ("process_batch", (("a", 1), ("b", 2)), [("a", 1), ("b", 2)]),
        ("process_columns", [("a", 1)], [("a", 1)]),
        ("tick", None, None),
        ("finish", None, None),
    ],
)
def test_a_hook_of_tuples_has_rows_to_send_again(hook, value, rows):
    assert rows_of(hook, "k", value) == rows


def test_it_says_where_it_was_and_has_its_rows_exactly():
    found = record(rows=[("k", {"a", 1}), (("x", 2), b"y")], event_time=4.0)
    assert CODEC.unpack(base64.b64decode(found["packed"])) == [("k", {"a", 1}), (("x", 2), b"y")]
    told = ("run", "lineage", "epoch", "checkpoint", "time", "unit", "sub_unit", "hook", "at", "event_time", "error")
    assert [found[name] for name in told] == [
        "r", "l", 2, 8, 5.0, "count", 3, "process", "input:0", 4.0, "ZeroDivisionError: by zero",
    ]  # fmt: skip
    json.dumps({**found, "key": "", "value": ""})


@pytest.mark.parametrize("given", [{"at": None}, {"rows": None}, {"rows": [("k", lambda: None)]}])
def test_what_cannot_be_sent_again_says_so(given):
    found = record(**given)
    assert (found["at"], found["packed"]) == (None, None)


def test_the_hook_is_the_one_that_raised():
    error = ValueError("x")
    say_hook(error, "open")
    assert record(error=error)["hook"] == "open"


def test_its_name_tells_apart_what_differs_and_no_more():
    assert record()["id"] == record(value=2, error=ValueError())["id"]
    others = [record(now=6.0), record(number=1), record(hook="tick"), record(rows=[("k", 2)])]
    assert len({each["id"] for each in [record(), *others]}) == 5
