"""A question for the state of keys: what is told, and that no state ends the run because somebody looked at it."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from esault import Bolt, Topology
from esault.flow.worker.state_peek import peeked
from esault.messages.control import PeekState
from esault.payload.codec import Codec
from esault.payload.timed_state import with_timers
from esault.routing.ring import canonical, key_of
from esault.sources import Items, Paced
from esault.testing import LocalRuntime
from esault.windows import CalendarWindow, CountWindow, SessionWindow, SlidingWindow, TumblingWindow

CODEC = Codec()


def operator(states, objects="key"):
    named = {canonical(key): state for key, state in states.items()}
    state = SimpleNamespace(names=lambda: list(named), peek=named.get, key_of=key_of)
    return SimpleNamespace(plan=SimpleNamespace(objects=objects, window=None), codec=CODEC, state=state)


def ask(states, *keys, prefix="", limit=20, objects="key"):
    said = peeked(7, operator(states, objects), PeekState(3, keys, prefix, limit))
    assert (said.incarnation, said.number) == (7, 3)
    return said.count, [(json.loads(key), json.loads(state)) for key, state in said.found], said.refused


def packed(**attributes):
    return CODEC.pack(attributes)


def test_keys_are_counted_by_their_beginning():
    states = {f"customer-{i}": packed(n=i) for i in range(200)} | {17: packed(n=-1)}
    count, found, _ = ask(states, prefix="customer-1", limit=3)
    assert (count, len(found)) == (111, 3)
    assert all(key.startswith("customer-1") for key, _ in found)
    assert ask(states, prefix="17")[:2] == (1, [(17, {"n": -1})])
    assert ask(states, limit=2)[0] == 201
    assert ask(states, "customer-7", limit=2)[:2] == (201, [("customer-7", {"n": 7})])


def test_timers_of_a_key_are_left_out():
    state = with_timers(packed(n=3), (("quiet", 1_000.0, "processing"),), CODEC)
    assert ask({"cat": state}, "cat") == (1, [("cat", {"n": 3})], "")


class Total(Bolt):
    def __init__(self):
        self.total = 0

    def process(self, key, value):
        self.total += value["n"]


def windowed(kind, *times):
    """Return what is told of a key in the middle of a run, whose tuples have these times."""
    t = Topology("windowed")
    values = [("a", {"at": at, "n": n}) for n, at in enumerate(times, 1)]
    rows = t.spout(
        "rows", Paced(Items([*values, *[("b", {"at": times[-1], "n": 0})] * 30]), rate=10), time=lambda v: v["at"]
    )
    rows.window("total", Total, kind)
    local = LocalRuntime(t)
    local.run_until(lambda: local.report().units["total"].tuples_in >= len(times))
    operator = local._processes[local.sub_units("total")[0]].core.operator
    ((key, state),) = peeked(7, operator, PeekState(3, ("a",), "", 1)).found
    assert json.loads(key) == "a"
    return json.loads(state)


def window(start, end, total):
    return {"start": start, "end": end, "state": {"total": total}}


@pytest.mark.parametrize(
    ("kind", "times", "told"),
    [
        (TumblingWindow(10), (1000, 1009), [window(1000, 1010, 3)]),
        (SlidingWindow(20, 10), (1000, 1011), [window(1000, 1020, 3), window(1010, 1030, 2)]),
        (CalendarWindow("day"), (0, 86_399), [window(0, 86_400, 3)]),
        (CountWindow(2), (1, 2, 3), {"tuples": 3, "windows": [window(2, 4, 3)]}),
        (CountWindow(4, 2), (1, 2, 3), {"tuples": 3, "windows": [window(0, 4, 6), window(2, 6, 3)]}),
    ],
)
def test_windows_are_told_with_their_bounds(kind, times, told):
    assert windowed(kind, *times) == told


def test_sessions_are_told_beside_what_waits_for_earlier_tuples():
    told = windowed(SessionWindow(30), 1000, 1010, 1020)
    assert told["sessions"] == [window(1000, 1040, 3)]
    assert told["waiting"] == [{"at": 1020, "value": {"at": 1020, "n": 3}}]


def test_one_object_for_all_stands_under_no_key():
    assert ask({None: packed(n=3)}, objects="unit") == (1, [(None, {"n": 3})], "")


@pytest.mark.parametrize("error", [ValueError("no state of mine"), RecursionError("too deep"), KeyError("n")])
def test_what_cannot_be_shown_is_said_and_ends_nothing(error):
    def peek(name):
        raise error

    state = SimpleNamespace(names=lambda: ["cat"], peek=peek)
    broken = SimpleNamespace(plan=SimpleNamespace(objects="key"), codec=CODEC, state=state)
    said = peeked(7, broken, PeekState(3, ("cat",), "", 1))
    assert said.found == () and type(error).__name__ in said.refused
    assert "FrameError" in ask({"cat": b"\xc1T\x09 of a later version"}, "cat")[2]
