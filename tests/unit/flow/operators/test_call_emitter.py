"""`self.emit` where several calls are open: to the call that emits, in whatever task it does, and to none that is over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from esault.errors import PayloadError, TopologyError
from esault.flow.operators.call_emitter import CURRENT, CallEmitter
from esault.flow.operators.calls import Call
from esault.payload.codec import Codec


class Bolt:
    emit: Callable[..., None]


def emitter(*streams, checked=10):
    made = CallEmitter("unit", streams, checked, False, Codec())
    Bolt.emit = made.function()
    return made


def call(key="k", hook="process"):
    return Call(owner=None, name=key, key=key, value=None, hook=hook, run=lambda call: None)


@pytest.fixture
def within():
    tokens = []
    yield lambda each: tokens.append(CURRENT.set(each))
    for token in reversed(tokens):
        CURRENT.reset(token)


def test_outside_of_calls_it_fills_the_columns_of_the_streams():
    made = emitter("late")
    Bolt().emit("a", 1)
    Bolt().emit("b", 2, "late")
    Bolt().emit("c", 3, stream="late")
    assert {name: (out.keys, out.values) for name, out in made.outs.items()} == {
        "": (["a"], [1]),
        "late": (["b", "c"], [2, 3]),
    }
    assert made.rows() == 3
    assert made.only_column is None


def test_a_call_has_its_own_and_what_it_starts_emits_for_it():
    made = emitter("late")
    calls = [call("a"), call("b")]

    async def work(each):
        CURRENT.set(each)

        async def part(number):
            await asyncio.sleep(0)
            Bolt().emit(each.key, number)

        Bolt().emit(each.key, "first", "late")
        await asyncio.gather(part(1), part(2))

    async def both():
        await asyncio.gather(*(work(each) for each in calls))

    asyncio.run(both())
    assert [each.emitted for each in calls] == [
        [("late", key, "first"), ("", key, 1), ("", key, 2)] for key in ("a", "b")
    ]
    assert made.rows() == 0
    assert made.columns(calls, None) == {
        "late": (["a", "b"], ["first", "first"], []),
        "": (["a", "a", "b", "b"], [1, 2, 1, 2], []),
    }
    assert made.columns([calls[0], call("c")], lambda each: f"id-{each.key}") == {
        "late": (["a"], ["first"], ["id-a.late-0"]),
        "": (["a", "a"], [1, 2], ["id-a.0", "id-a.1"]),
    }


def test_marks_and_rewinds_are_of_the_call_too(within):
    made = emitter()
    one = call()
    Bolt().emit("a", 1)
    within(one)
    Bolt().emit("b", 2)
    marks = made.marks()
    Bolt().emit("b", 3)
    assert made.rows() == 3
    made.rewind(marks)
    assert one.emitted == [("", "b", 2)]
    assert made.outs[""].keys == ["a"]
    assert made.rows() == 2


def test_a_call_that_has_returned_must_not_emit(within):
    emitter()
    one = call("key 7", "finish")
    within(one)
    one.over = True
    with pytest.raises(RuntimeError, match=r"Bolt.emit: the call of finish for key 'key 7' has returned"):
        Bolt().emit("a", 1)
    assert one.emitted == []


@pytest.mark.parametrize("inside", [False, True])
def test_what_cannot_travel_and_streams_that_are_not_there_are_refused_in_the_call(within, inside):
    made = emitter()
    one = call()
    if inside:
        within(one)
    with pytest.raises(PayloadError):
        Bolt().emit("a", lambda: None)
    with pytest.raises(TopologyError):
        Bolt().emit("a", 1, "nowhere")
    assert made.rows() == 0


def test_emits_are_checked_one_by_one_at_first_alone():
    made = emitter(checked=2)
    Bolt().emit("a", 1)
    Bolt().emit("a", 1)
    assert made.trusted
    Bolt().emit("a", lambda: None)  # the batch is checked
    assert made.rows() == 3
    assert Bolt.emit.__qualname__ == "Bolt.emit"
