"""Function steps of a batch in which some raise: each is asked as often as its policy says, and no other one twice."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from esault import dead_letter, fail, skip
from esault.flow.operators.user_error import UserError
from esault.flow.send.outlet import OutletRunner
from esault.topology.plan import Outlet
from esault.topology.step import Step

KINDS = ["map", "filter", "flat_map", "key_by"]


class Taken:
    """Keeps what comes out of the outlet."""

    def __init__(self) -> None:
        self.rows: list[tuple[Any, Any, Any]] = []

    def write(self, lineage: Any, keys: Any, values: Any, ids: Any, now: float) -> None:
        self.rows += zip(keys, values, ids)


def pushed(kind: str, function: Any, values: list[Any], policy: Any = None) -> tuple[list[Any], list[Any]]:
    """(rows, values that were survived) of a batch that goes through one step."""
    taken, survived = Taken(), []
    runner = OutletRunner(
        Outlet(steps=(Step(kind, function, "step", policy or skip()),), sinks=("sink",)),  # type: ignore[arg-type]
        lambda sink: taken,  # type: ignore[arg-type, return-value]
        lambda edge, clock: None,  # type: ignore[arg-type, return-value]
        lambda step: None,  # type: ignore[arg-type, return-value]
        lambda step, error, key, value: survived.append((type(error), value)),
        chance=lambda: 0.0,
    )
    runner.push(None, [f"k{v}" for v in values], values, [f"i{v}" for v in values], 0.0)  # type: ignore[arg-type]
    return taken.rows, survived


def result(kind: str, value: int) -> Any:
    return {"map": value, "filter": True, "flat_map": [value], "key_by": f"k{value}"}[kind]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bad", [(), (0,), (9,), (3, 4, 7), tuple(range(10))], ids=str)
@pytest.mark.parametrize("retries", [0, 2])
@pytest.mark.parametrize("raised", [ValueError, StopIteration])
def test_each_is_asked_once_but_those_that_raise(kind, bad, retries, raised):
    asked: Counter[int] = Counter()

    def function(value):
        asked[value] += 1
        if value in bad:
            raise raised(value)
        return result(kind, value)

    rows, survived = pushed(kind, function, list(range(10)), skip(retries))
    good = [v for v in range(10) if v not in bad]
    tail = ".0" if kind == "flat_map" else ""
    assert rows == [(f"k{v}", v, f"i{v}{tail}") for v in good]
    assert survived == [(raised, v) for v in bad]
    # That one ended the map shows by it alone: it is asked once more.
    more = raised is StopIteration
    assert asked == {v: 1 + (retries + more) * (v in bad) for v in range(10)}


@pytest.mark.parametrize("kind", KINDS)
def test_what_goes_well_at_another_try_has_its_place(kind):
    asked: Counter[int] = Counter()

    def function(value):
        asked[value] += 1
        if value in (2, 5) and asked[value] < 3:
            raise ValueError(value)
        return result(kind, value)

    rows, survived = pushed(kind, function, list(range(8)), dead_letter("d.jsonl", retries=2))
    assert [value for _, value, _ in rows] == list(range(8))
    assert survived == [] and asked[2] == asked[5] == 3


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_that_ends_the_run_is_named_with_its_own_error_alone(kind):
    def function(value):
        if value == 1:
            raise ValueError("one")
        return result(kind, value)

    with pytest.raises(UserError, match=r"step 'step' \(.*function\), key 'k1': ValueError: one\n") as failed:
        pushed(kind, function, [0, 1, 2], fail())
    assert str(failed.value).count("Traceback") == 1 and "flow/send/outlet.py" not in str(failed.value)


def test_what_is_no_several_values_is_said():
    with pytest.raises(UserError, match=r"the function of flat_map must return several values, in a list say; got 1"):
        pushed("flat_map", lambda value: value, [1], fail())
    rows, survived = pushed("flat_map", lambda value: value and [value], [0, 1, 2])
    assert [value for _, value, _ in rows] == [1, 2] and survived == [(TypeError, 0)]


class Neither:
    """Is neither true nor false."""

    def __bool__(self) -> bool:
        raise ArithmeticError("neither")


def test_a_filter_whose_result_is_neither_true_nor_false_fails_for_that_row():
    asked: Counter[int] = Counter()

    def function(value):
        asked[value] += 1
        if value == 0:
            raise ValueError
        return Neither() if value == 2 else value % 2 == 1

    rows, survived = pushed("filter", function, list(range(6)))
    assert [value for _, value, _ in rows] == [1, 3, 5]
    assert survived == [(ValueError, 0), (ArithmeticError, 2)]
    assert asked == {0: 1, 1: 1, 2: 2, 3: 1, 4: 1, 5: 1}
