"""Function steps in one loop make of values what they make one behind the other, errors and their policies included."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from esault import Topology, TopologyFailed, dead_letter, skip
from esault.flow.operators import hot_loop
from esault.flow.send.fused_steps import FusedSteps, fused_steps
from esault.messages.settings import Settings
from esault.sinks import Collect
from esault.sources import Items
from esault.testing import LocalRuntime
from esault.topology.step import Step
from tests.programs.units import Landed

SETTINGS = Settings(checked_emits=0, watch_values=False, root_rows=20)


def add_one(value):
    return value + 1


def inverse(value):
    return 60 // (value - 141)


def doubled(value):
    return value * 2


def is_odd(value):
    return value % 2 == 1


def opened(value):
    return json.loads(json.dumps(value))


class WithIds(Landed):
    wants_id = True


@pytest.fixture
def loops(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each batch of steps that could be in one loop whether they were; they are hot soon."""
    seen: list[bool] = []
    mapped = FusedSteps.mapped

    def noted(self: FusedSteps, values: Any) -> Any:
        made = mapped(self, values)
        seen.append(made is not None)
        return made

    monkeypatch.setattr(hot_loop, "HOT", 60)
    monkeypatch.setattr(FusedSteps, "mapped", noted)
    return seen


ROWS = [(f"k{i % 7}", str(i % 150)) for i in range(400)]


def put_out(chosen: list[tuple[str, Any, Any]], sink: type[Any] = Collect, rows: Any = ROWS) -> tuple[Any, ...]:
    t = Topology("steps")
    stream: Any = t.spout("rows", Items(rows))
    for kind, function, policy in chosen:
        stream = getattr(stream, kind)(function, **({} if policy is None else {"on_error": policy}))
    stream.sink("out", sink())
    local = LocalRuntime(t, settings=SETTINGS)
    try:
        local.run_until_drained()
    except TopologyFailed as error:
        return (str(error),)
    rows = local.report().units["rows"]
    landed = [(row.key, row.value, row.id) for row in local.landed("out")]
    return landed, rows.errors, rows.dead_letters, [(each["hook"], each["error"]) for each in local.dead_letters]


@pytest.mark.parametrize(
    "chosen",
    [
        [("map", int, None), ("map", add_one, None), ("map", doubled, None)],
        [
            ("map", str.strip, None),
            ("map", int, None),
            ("filter", is_odd, None),
            ("map", doubled, None),
            ("map", add_one, None),
        ],
        [("map", int, None), ("map", add_one, None), ("map", inverse, skip()), ("map", doubled, None)],
        [("map", int, None), ("map", inverse, dead_letter("letters")), ("map", add_one, None), ("key_by", str, None)],
        [("map", int, None), ("map", inverse, None)],
    ],
)
@pytest.mark.parametrize("sink", [Collect, WithIds])
def test_what_comes_out_is_what_single_steps_put_out(loops, monkeypatch, chosen, sink):
    fused = put_out(chosen, sink)
    assert True in loops
    monkeypatch.setattr(hot_loop, "HOT", 10**9)
    loops.clear()
    assert put_out(chosen, sink) == fused
    assert True not in loops


@pytest.mark.parametrize("function", [opened, lambda value: [value]])
def test_steps_that_run_other_code_go_one_by_one(loops, function):
    put_out([("map", int, None), ("map", function, None), ("map", doubled, None)])
    assert loops and True not in loops


class Number(int):
    """Whose operators are a user's."""

    def __add__(self, other):
        return Number(int(self) - other)


def test_values_that_run_other_code_go_one_by_one(loops):
    rows = [("a", Number(i)) for i in range(400)]
    landed, *_ = put_out([("map", add_one, None), ("map", doubled, None)], rows=rows)
    assert loops and True not in loops
    assert [value for _, value, _ in landed] == [2 * (i - 1) for i in range(400)]


def test_where_something_follows_lines_they_go_one_by_one(loops):
    begun = sys.getprofile()
    sys.setprofile(lambda *what: None)
    try:
        put_out([("map", int, None), ("map", doubled, None)])
    finally:
        sys.setprofile(begun)
    assert loops and True not in loops


def test_those_that_follow_one_another_and_map_are_found():
    kinds = ["map", "map", "filter", "map", "key_by", "map", "map", "map"]
    steps = [Step(kind, add_one, f"{kind}-{i}") for i, kind in enumerate(kinds)]
    assert {at: found.count for at, found in fused_steps(steps).items()} == {0: 2, 5: 3}
    assert fused_steps(steps[:1]) == fused_steps([]) == {}
