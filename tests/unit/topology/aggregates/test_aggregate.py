"""Aggregates by themselves: what is known of some values, added to and merged, is what a plain loop says of all of them."""

from __future__ import annotations

import itertools
import types

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault import TopologyError
from esault.topology.aggregates.aggregate import Aggregate, Collect, Count, Extreme, Mean, Sum, TopK
from esault.topology.aggregates.aggregated import Aggregated

KINDS = {
    "count": (Count(), len),
    "sum": (Sum("n"), lambda rows: sum(row["n"] for row in rows)),
    "mean": (Mean(lambda row: row["n"]), lambda rows: sum(row["n"] for row in rows) / len(rows)),
    "min": (Extreme("min", "n"), lambda rows: min(row["n"] for row in rows)),
    "max": (Extreme("max", "n"), lambda rows: max(row["n"] for row in rows)),
    "collect": (Collect("n"), lambda rows: [row["n"] for row in rows]),
    # sorted() keeps the order of equal ones, as `top_k` does
    "top_k": (TopK(3, "n"), lambda rows: sorted(rows, key=lambda row: -row["n"])[:3]),
}

ROWS = st.lists(st.builds(lambda n, i: {"n": n, "i": i}, st.integers(-4, 4), st.integers(0, 9)), min_size=1, max_size=9)


def known(aggregate, rows):
    found = aggregate.first(rows[0])
    for row in rows[1:]:
        found = aggregate.add(found, row)
    return found


@pytest.mark.parametrize("kind", KINDS)
@given(ROWS, ROWS)
def test_parts_that_travel_and_are_merged_give_what_a_plain_loop_says_of_all(kind, left, right):
    aggregate, loop = KINDS[kind]
    assert aggregate.result(known(aggregate, left)) == loop(left)
    merged = aggregate.merge(known(aggregate, left), aggregate.read(aggregate.wire(known(aggregate, right))))
    assert aggregate.result(merged) == loop(left + right)


def test_what_has_travelled_is_no_part_of_what_stays():
    for aggregate in (Collect("n"), TopK(3, "n")):
        here = aggregate.first({"n": 1})
        away = aggregate.wire(here)
        aggregate.merge(here, aggregate.first({"n": 2}))
        assert len(away) == 1


def test_a_part_is_a_field_an_attribute_what_a_function_gives_or_all_of_the_value():
    row = types.SimpleNamespace(n=3)
    assert (Sum("n").part({"n": 2}), Sum("n").part(row), Sum(lambda v: v + 1).part(1), Sum().part(7)) == (2, 3, 2, 7)


@pytest.mark.parametrize(
    ("value", "kind", "said"),
    [
        ({"paid": 1, "at": 2}, KeyError, r"sum\(...\): a value of type dict has no field 'n'; it has 'paid', 'at'"),
        (types.SimpleNamespace(paid=1), AttributeError, "a value of type SimpleNamespace has no field 'n'$"),
    ],
)
def test_a_field_that_is_not_there_is_said_with_those_that_are(value, kind, said):
    with pytest.raises(kind, match=said):
        Sum("n").part(value)


def test_it_says_how_it_was_asked_for():
    assert [repr(each) for each in (Count(), Sum("n"), Extreme("min", len), TopK(2, "n"))] == [
        "count()",
        "sum('n')",
        "min(of=...)",
        "top_k('n', k=2)",
    ]


@pytest.mark.parametrize("k", [0, 1.5, True, "3"])
def test_top_k_takes_a_whole_number(k):
    with pytest.raises(TopologyError, match="k must be a whole number from 1 on"):
        TopK(k)


def test_one_of_ones_own_need_not_say_how_one_value_is_added():
    class Longest(Aggregate):
        kind = "longest"

        def first(self, value):
            return value

        def merge(self, known, other):
            return max(known, other, key=len)

    assert Longest().add("aa", "b") == "aa" and Longest().result(Longest().read(Longest().wire("aa"))) == "aa"


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers()), min_size=1),
    st.integers(1, 4),
    st.lists(st.integers(0, 1)),
)
def test_the_greatest_are_the_same_however_they_are_merged(values, k, merged) -> None:
    top = TopK(k, lambda value: value[0])
    known = top.first(values[0])
    for value, alone in itertools.zip_longest(values[1:], merged[: len(values) - 1], fillvalue=0):
        before = list(known)
        known, had = (top.merge(known, top.first(value)) if alone else top.add(known, value)), known
        assert had == before  # a bolt whose next aggregate raises keeps what it had
    assert top.result(known) == sorted(values, key=lambda value: -value[0])[:k]
    half = len(values) // 2
    if half:
        parts = []
        for rows in (values[:half], values[half:]):
            parts.append(top.first(rows[0]))
            for value in rows[1:]:
                parts[-1] = top.add(parts[-1], value)
        assert top.merge(*parts) == known


NAN = float("nan")
NUMBERS = st.lists(st.one_of(st.integers(-3, 3), st.just(NAN)), min_size=1, max_size=6)


@given(st.lists(NUMBERS, min_size=1, max_size=4), st.integers(1, 3))
def test_nan_is_none_of_the_numbers_however_values_are_put_together(parts, k):
    numbers = sorted(n for part in parts for n in part if n == n)
    for aggregate, wanted in (
        (Extreme("min"), numbers[0] if numbers else NAN),
        (Extreme("max"), numbers[-1] if numbers else NAN),
        (TopK(k), numbers[::-1][:k]),
    ):
        found = known(aggregate, parts[0])
        for part in parts[1:]:
            found = aggregate.merge(found, known(aggregate, part))
        assert repr(aggregate.result(found)) == repr(wanted)


def test_what_is_known_of_several_values_is_taken_in_by_all_aggregates_or_none():
    bolt = Aggregated({"all": Collect(), "least": Extreme("min")}, True, True)
    bolt.process("a", (0, ([1, 2], 1), None))
    with pytest.raises(TypeError):
        bolt.process("a", (0, (["x", "y"], "x"), None))
    bolt.process("a", (0, ([0], 0), None))
    assert bolt.known == [[1, 2, 0], 0]
