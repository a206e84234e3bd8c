"""Rows combined by Arrow: what the unit makes of them is what it makes of the rows themselves, to the type."""

from __future__ import annotations

import random
from decimal import Decimal
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esault import aggregates as agg
from esault.flow.channel.array_batch import ArrayBatch
from esault.flow.channel.lineage import Lineage
from esault.topology.aggregates.aggregated import Combine
from esault.windows import CalendarWindow, SlidingWindow, TumblingWindow

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'esault[spark]'")

from esault.spark.engine import combining  # noqa: E402
from esault.spark.engine.combining import Combining, is_native  # noqa: E402
from esault.spark.engine.exact_numbers import MOST  # noqa: E402

LINEAGE = Lineage((0, 0, 0), 0.0)
ALL = {"n": agg.count(), "sum": agg.sum("n"), "mean": agg.mean("n"), "least": agg.min("n"), "most": agg.max("n")}
WINDOWS = [
    TumblingWindow(10),
    TumblingWindow(0.1),
    SlidingWindow(10, 5),
    SlidingWindow(0.7, 0.2),
    SlidingWindow(15, 6, 1.5),
]


def at(value):
    return value["at"]


class Way:
    """In place of a route."""

    def __init__(self):
        self.rows = []

    def restart(self, turn):
        self.rows = []

    def push(self, lineage, keys, values, ids, now):
        self.rows += zip(keys, values, ids or [None] * len(keys))


def combined(batches, kind, aggregates=ALL, ids=None):
    """The rows that are sent of these batches of (key, value)."""
    way = Way()
    made = Combining(way, Combine(aggregates, kind, at))  # type: ignore[arg-type]
    made.restart(0)
    number = 0
    for batch in batches:
        keys, values = zip(*batch)
        names = None if ids is None else [f"{ids}{number + i}" for i in range(len(batch))]
        number += len(batch)
        made.push(LINEAGE, keys, values, names, 0.0)
    made.flush()
    return way.rows


def told(rows, kind, aggregates=ALL):
    """What is known of each key and window, by `repr`, since 1 is no True and -0.0 no 0.0."""
    of = list(aggregates.values())
    known: dict[Any, list[Any]] = {}
    for key, (time, partial, value), _ in rows:
        some = list(partial) if partial is not None else [each.first(value) for each in of]
        for index in kind.indices(at(value) if partial is None else time):
            place = repr((key, index))
            known[place] = [a.merge(x, y) for a, x, y in zip(of, known[place], some)] if place in known else some
    return {place: repr(each) for place, each in known.items()}


def as_rows(batches):
    return [(key, (None, None, value), None) for batch in batches for key, value in batch]


KEYS = st.sampled_from(
    ["a", "b", "", "1", 1, True, 0, False, None, b"a", (1, ("a", None)), (True, ("a", None)), 1 << 70]
)
SMALL = st.integers(-50, 50)
NUMBERS = [
    SMALL,
    st.integers(-(1 << 66), 1 << 66),
    st.sampled_from([MOST, -MOST, MOST + 1, -MOST - 1, (1 << 63) - 1, -(1 << 63), 1 << 63]),
    st.sampled_from([0.0, -0.0, float("inf"), 1.5, -2.5, 1e300]),
    st.one_of(SMALL, st.booleans(), st.sampled_from([0.5, Decimal("0.25"), 3.0])),
]
TIMES = st.one_of(SMALL, st.floats(-100, 100, width=32), st.floats(-30, 30))


@st.composite
def batches_of(draw):
    numbers = draw(st.lists(st.sampled_from(NUMBERS), min_size=1, max_size=2))
    times = draw(st.sampled_from([TIMES, SMALL, st.floats(0, 20)]))
    row = st.tuples(KEYS, st.fixed_dictionaries({"at": times, "n": st.one_of(numbers)}))
    return draw(st.lists(st.lists(row, min_size=1, max_size=12), min_size=1, max_size=6))


@settings(max_examples=150, deadline=None)
@given(batches_of(), st.sampled_from(WINDOWS), st.integers(4, 40))
def test_what_is_known_of_each_window_is_what_its_rows_say(batches, kind, most):
    # Decimal and float have no sum, -inf and inf none that is a number: what a row raises is another test's.
    kinds = {type(value["n"]) for batch in batches for _, value in batch}
    if Decimal in kinds and float in kinds:
        kinds -= {Decimal}
        batches = [[row for row in batch if type(row[1]["n"]) is not Decimal] or batch[:0] for batch in batches]
        batches = [batch for batch in batches if batch]
        if not batches:
            return
    aggregates = ALL if float not in kinds else {n: ALL[n] for n in ("n", "least", "most")}  # see the next one
    before, combining.MOST_ROWS = combining.MOST_ROWS, most
    try:
        rows = combined(batches, kind, aggregates)
    finally:
        combining.MOST_ROWS = before
    assert told(rows, kind, aggregates) == told(as_rows(batches), kind, aggregates)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from("abc"), st.floats(-100, 100), SMALL), min_size=1, max_size=30),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from(WINDOWS),
    st.sampled_from([pa.int16(), pa.int64(), pa.float64()]),
    st.booleans(),
    st.integers(4, 40),
)
def test_columns_of_arrow_are_combined_as_their_rows_are(batches, kind, of, encoded, most):
    way = Way()
    before, combining.MOST_ROWS = combining.MOST_ROWS, most
    try:
        made = Combining(way, Combine(ALL, kind, itemgetter("at")))  # type: ignore[arg-type]
        made.restart(0)
        rows = []
        for batch in batches:
            keys, times, numbers = zip(*batch)
            columns = pa.RecordBatch.from_pydict({"at": times, "n": pa.array(numbers).cast(of)})
            found = ArrayBatch(pa.array(keys).dictionary_encode() if encoded else pa.array(keys), columns)
            rows.append(list(zip(*found.rows)))
            made.push_arrays(LINEAGE, found, None, 0.0)
        made.flush()
    finally:
        combining.MOST_ROWS = before
    assert told(way.rows, kind) == told(as_rows(rows), kind)


def test_columns_of_arrow_are_not_made_rows_of():
    class Columns(ArrayBatch):
        @property
        def rows(self):
            raise AssertionError("rows were made")

    way = Way()
    made = Combining(way, Combine(ALL, TumblingWindow(10), itemgetter("at")))  # type: ignore[arg-type]
    made.push_arrays(
        LINEAGE,
        Columns(pa.array(["a", "b", "a"]), pa.RecordBatch.from_pydict({"at": [1, 2, 11], "n": [1, 2, 3]})),
        None,
        0.0,
    )
    made.flush()
    assert [(key, at, known[0]) for key, (at, known, _), _ in way.rows] == [("a", 1, 1), ("b", 2, 1), ("a", 11, 1)]


@pytest.mark.parametrize(
    "columns",
    [
        {"at": [1, 2], "n": [1, None]},
        {"at": [1, 2], "n": [True, False]},
        {"at": [1, 2], "n": [-0.0, 1.0]},
        {"at": [1, 2], "n": [MOST + 1, 1]},
        {"at": [1, 2], "other": [1, 2]},
        {"at": [None, 2], "n": [1, 2]},
    ],
    ids=str,
)
def test_columns_with_which_arrow_does_not_reckon_as_python_does_go_as_rows(columns):
    batch = ArrayBatch(pa.array(["a", "b"]), pa.RecordBatch.from_pydict(columns))
    way, other = Way(), Way()
    for place, push in ((way, "push_arrays"), (other, "push")):
        made = Combining(place, Combine({"sum": agg.sum("n")}, TumblingWindow(10), itemgetter("at")))  # type: ignore[arg-type]
        getattr(made, push)(LINEAGE, *((batch,) if push == "push_arrays" else batch.rows), None, 0.0)
        made.flush()
    assert repr(way.rows) == repr(other.rows) and way.rows


@pytest.mark.parametrize("kind", WINDOWS[:2], ids=str)  # sliding windows add what they share first
def test_sums_of_floats_are_those_of_a_loop_in_the_order_of_the_rows(kind):
    r = random.Random(1)
    rows = [(f"k{r.randrange(7)}", {"at": r.uniform(-50, 50), "n": r.uniform(-1e9, 1e9)}) for _ in range(3000)]
    batches = [rows[i : i + 100] for i in range(0, 3000, 100)]
    found = combined(batches, kind)
    assert told(found, kind) == told(as_rows(batches), kind)


def test_rows_of_a_whole_batch_become_one_for_each_key_and_window_with_the_first_ones_time_and_id():
    batches = [[(key, {"at": i + 0.5, "n": 10 * i}) for key in "ab"] for i in range(20)]
    assert combined(batches, TumblingWindow(10), {"n": agg.count(), "sum": agg.sum("n")}, ids="r") == [
        ("a", (0.5, (10, 450), None), "r0"),
        ("b", (0.5, (10, 450), None), "r1"),
        ("a", (10.5, (10, 1450), None), "r20"),
        ("b", (10.5, (10, 1450), None), "r21"),
    ]


@pytest.mark.parametrize(
    "numbers",
    [[True, True], [1, 2.0], [None, 1], [float("nan")] * 2, [-0.0] * 2, [1 << 63] * 2, [MOST + 1] * 2, ["a", "b"]],
)
def test_values_with_which_arrow_does_not_reckon_as_python_does_go_the_other_way(numbers):
    rows = [[("a", {"at": 0, "n": 1})] * 4, [("a", {"at": 0, "n": n}) for n in numbers], [("a", {"at": 1, "n": 2})] * 4]
    one = {"sum": agg.sum("n")}
    found = combined(rows, TumblingWindow(10), one)
    assert found[0] == ("a", (0, (4,), None), None) and found[-1] == ("a", (1, (8,), None), None)  # in their order
    middle = [value for _, value, _ in found[1:-1]]
    alone = Combine(one, TumblingWindow(10), at)
    assert repr(middle) == repr(alone([key for key, _ in rows[1]], [value for _, value in rows[1]], None)[1])


def test_greatest_and_least_are_combined_up_to_64_bits():
    numbers = [(1 << 63) - 1, -(1 << 63), 0]
    rows = [[("a", {"at": 0, "n": n}) for n in numbers]]
    two = {"least": agg.min("n"), "most": agg.max("n")}
    assert combined(rows, TumblingWindow(10), two) == [("a", (0, (-(1 << 63), (1 << 63) - 1), None), None)]


def test_what_the_users_function_raises_is_left_to_the_unit():
    rows = [[("a", {"at": 0, "n": 1}), ("a", {"at": 0})]]
    found = combined(rows, TumblingWindow(10))
    assert found == [("a", (None, None, {"at": 0, "n": 1}), None), ("a", (None, None, {"at": 0}), None)]


def test_a_batch_that_would_not_get_smaller_is_given_up_and_the_next_one_is_tried(monkeypatch):
    monkeypatch.setattr(combining, "MOST_ROWS", 10)
    way = Way()
    made = Combining(way, Combine({"n": agg.count()}, TumblingWindow(10), at))  # type: ignore[arg-type]
    for _ in range(2):
        made.restart(0)
        for start in range(0, 30, 10):
            made.push(LINEAGE, [str(start + i) for i in range(10)], [{"at": 0, "n": 1}] * 10, None, 0.0)
        made.flush()
        assert [partial for _, (_, partial, _), _ in way.rows] == [(1,)] * 10 + [None] * 20


def test_which_aggregates_and_windows_arrow_has():
    def native(kind=TumblingWindow(10), **aggregates):
        return is_native(Combine(aggregates, kind, at))

    assert native(**ALL) and native(SlidingWindow(10, 5), n=agg.count())
    assert (
        not native(best=agg.top_k(2, "n"))
        and not native(all=agg.collect())
        and not native(n=agg.count(), q=agg.quantile(0.5))
    )
    assert not native(CalendarWindow("day"), n=agg.count())
