"""Bytewax' own tests of operators, state and clocks; the facts alone, seconds from its `align_to`."""

from __future__ import annotations

import operator

import pytest
from steps import Rows
from test_joins import run
from test_timers import Steps as KeySteps

from esault import Bolt, Topology, TopologyFailed, by_key, shuffle
from esault import aggregates as agg
from esault.flow.watermark.clock import BEGINNING, END_OF_TIME, Clock
from esault.flow.watermark.merging import Merging
from esault.sources import Items
from esault.testing import LocalRuntime, ManualClock
from esault.topology.event_time import EventTime
from esault.windows import SessionWindow, TumblingWindow


class Passes(Bolt):
    """A unit whose tuples can be looked at."""

    def process(self, key, value):
        self.emit(key, value)


def emitted(items, build):
    """What a unit "out" emits of these items, which have no keys unless they are pairs."""
    t = Topology("operators")
    build(t.spout("rows", Items([item if isinstance(item, tuple) else (None, item) for item in items])))
    local = LocalRuntime(t)
    local.run_until_drained()
    return local.emitted("out")


def odd(item):
    return item % 2 != 0


# Bytewax: pytests/operators ------------------------------------------------------------------------------------

ALL = [("ALL", n) for n in (1, 4, 2, 9, 4, 3)]
VALS = [{"user": "a", "val": n} for n in (1, 9, 3)]


@pytest.mark.parametrize(
    ("items", "build", "expected"),
    [
        # test_filter.py: test_filter
        ([1, 2, 3], lambda s: s.filter(odd), [(None, 1), (None, 3)]),
        # test_filter_value.py: test_filter_value
        ([1, 2, 3], lambda s: s.key_by(lambda _: "ALL").filter(odd), [("ALL", 1), ("ALL", 3)]),
        # test_filter_map.py: test_filter_map
        (
            [0, 1, 2, 3, 4, 5],
            lambda s: s.flat_map(lambda n: [] if odd(n) else [n + 1]),
            [(None, 1), (None, 3), (None, 5)],
        ),
        # test_filter_map_value.py: test_filter_map_value
        (
            [("ALL", n) for n in range(6)],
            lambda s: s.flat_map(lambda n: [] if odd(n) else [n + 1]),
            [("ALL", 1), ("ALL", 3), ("ALL", 5)],
        ),
        # test_flat_map.py: test_flat_map
        (["split this"], lambda s: s.flat_map(str.split), [(None, "split"), (None, "this")]),
        # test_flat_map.py: test_flat_map_iterable
        (
            [(None, ("a", 2)), (None, ("b", 4))],
            lambda s: s.flat_map(lambda pair: [pair[0]] * pair[1]),
            [(None, letter) for letter in "aabbbb"],
        ),
        # test_flatten.py: test_flatten
        ([[1, 2], [], [3]], lambda s: s.flat_map(list), [(None, 1), (None, 2), (None, 3)]),
        # test_map.py: test_map
        ([0, 1, 2], lambda s: s.map(lambda n: n + 1), [(None, 1), (None, 2), (None, 3)]),
        # test_map_value.py: test_map_value
        (
            [0, 1, 2],
            lambda s: s.key_by(lambda _: "ALL").map(lambda n: n + 1),
            [("ALL", 1), ("ALL", 2), ("ALL", 3)],
        ),
        # helpers/test_map_dict_value.py: test_map_dict_value
        (
            [{"a": n, "b": 0} for n in range(3)],
            lambda s: s.map(lambda value: {**value, "a": value["a"] + 1}),
            [(None, {"a": n, "b": 0}) for n in (1, 2, 3)],
        ),
        # test_key_on.py: test_key_on
        ([1, 2, 3], lambda s: s.key_by(str), [("1", 1), ("2", 2), ("3", 3)]),
    ],
)
def test_operators(items, build, expected):
    assert emitted(items, lambda s: build(s).bolt("out", Passes, shuffle())) == expected


@pytest.mark.parametrize(
    ("items", "build", "expected"),
    [
        # test_count_final.py: test_count_final
        (
            ["a", "a", "b", "c", "b", "a"],
            lambda s: s.key_by(lambda letter: letter).aggregate("out", {"n": agg.count()}),
            {"a": {"n": 3}, "b": {"n": 2}, "c": {"n": 1}},
        ),
        # test_max_min_final.py: test_max_final
        (
            VALS,
            lambda s: s.key_by(operator.itemgetter("user")).reduce(
                "out", lambda most, value: max(most, value, key=operator.itemgetter("val")), initial={"val": 0}
            ),
            {"a": {"user": "a", "val": 9}},
        ),
        # test_max_min_final.py: test_min_final
        (
            VALS,
            lambda s: s.key_by(operator.itemgetter("user")).reduce(
                "out", lambda least, value: min(least, value, key=operator.itemgetter("val")), initial={"val": 99}
            ),
            {"a": {"user": "a", "val": 1}},
        ),
        # test_reduce_final.py: test_reduce_final; test_fold_final.py: test_fold_final
        (ALL, lambda s: s.reduce("out", max, initial=0), {"ALL": 9}),
    ],
)
def test_the_last_total_of_each_key(items, build, expected):
    assert dict(emitted(items, build)) == expected


def test_streams_that_are_merged():
    """test_merge.py, test_merge: order holds within each"""
    inputs = {"odds": [1, 3, 5], "evens": [2, 4, 6], "huge": [100, 200, 300]}
    t = Topology("merge")
    first, *others = (t.spout(name, Items([(name, n) for n in numbers])) for name, numbers in inputs.items())
    first.union(*others).bolt("out", Passes, shuffle())
    local = LocalRuntime(t)
    local.run_until_drained()
    found = local.emitted("out")
    assert {name: [n for key, n in found if key == name] for name in inputs} == inputs


@pytest.mark.parametrize(
    ("items", "build"),
    [
        # test_flatten.py: test_flatten_raises
        ([666], lambda s: s.flat_map(lambda value: value)),
        # test_raises.py: test_raises
        ([0, 1, 2], lambda s: s.map(lambda value: 1 / 0)),
    ],
)
def test_what_raises_ends_the_run(items, build):
    with pytest.raises(TopologyFailed):
        emitted(items, lambda s: build(s).bolt("out", Passes, shuffle()))


class Says(Bolt):
    """Emits the state before and the one behind."""

    of: str = ""
    discards: str = ""

    def __init__(self):
        self.state = "NEW"

    def to(self, state):
        self.emit(self.key, (self.state, state))
        self.state = "NEW" if state in self.discards else state

    def process(self, key, value):
        self.to("ITEM")
        if "NOTIFY" in self.of:
            self.timer("notify", self.context.now(), by="processing")

    def on_timer(self, name, at):
        self.to("NOTIFY")

    def finish(self):
        if "EOF" in self.of:
            self.to("EOF")


@pytest.mark.parametrize(
    ("of", "discards", "expected"),
    [
        # test_stateful.py: test_stateful_on_item_discard
        ("", "ITEM", ["NEW ITEM", "NEW ITEM"]),
        # test_stateful.py: test_stateful_on_item_retain
        ("", "", ["NEW ITEM", "ITEM ITEM"]),
        # test_stateful.py: test_stateful_on_notify_discard
        ("NOTIFY", "NOTIFY", ["NEW ITEM", "ITEM NOTIFY", "NEW ITEM", "ITEM NOTIFY"]),
        # test_stateful.py: test_stateful_on_notify_retain
        ("NOTIFY", "", ["NEW ITEM", "ITEM NOTIFY", "NOTIFY ITEM", "ITEM NOTIFY"]),
    ],
)
@pytest.mark.parametrize("moves", [False, True])
def test_what_becomes_of_state(moves, of, discards, expected):
    bolt = type("Logic", (Says,), {"of": of, "discards": discards})
    unit = KeySteps(moves, lambda s: s.bolt("unit", bolt, by_key()))
    found = []
    for now in (1, 2):
        found += unit.give("ALL", now)
        found += unit.time(now)
    assert [" ".join(value) for _, _, value in found] == expected


class Last(Bolt):
    """Emits the value before and this one; a value may say that it is to be forgotten."""

    def __init__(self):
        self.last = None

    def process(self, key, value):
        self.emit(key, (self.last, value[0]))
        self.last = None if value[0] == "DISCARD" else value[0]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        # test_stateful.py: test_stateful_keeps_logic_per_key, test_stateful_snapshots_logic_per_key
        (["a1", "b1", "a2", "b2"], [(None, "a1"), (None, "b1"), ("a1", "a2"), ("b1", "b2")]),
        # test_stateful.py: test_stateful_snapshots_discard_per_key
        (
            ["a1", "b1", "aDISCARD", "b2", "a3", "b3"],
            [(None, "a1"), (None, "b1"), ("a1", "DISCARD"), ("b1", "b2"), (None, "a3"), ("b2", "b3")],
        ),
    ],
)
@pytest.mark.parametrize("moves", [False, True])
def test_state_of_each_key(moves, values, expected):
    unit = KeySteps(moves, lambda s: s.timed(lambda value: 0).bolt("unit", Last, by_key()))
    found = [row for value in values for row in unit.give(value[0], value[1:] if "DISC" in value else value)]
    assert [value for _, _, value in found] == expected


class Greater(Bolt):
    def __init__(self):
        self.last = None

    def process(self, key, value):
        if self.last is None or value > self.last:
            self.emit(key, value)
        self.last = value


class Mean(Bolt):
    """The mean of what is kept: of a fourth value on, the peer's test keeps all but the last three."""

    def __init__(self):
        self.kept = []

    def process(self, key, value):
        self.kept.append(value)
        if len(self.kept) > 3:
            self.kept = self.kept[:-3]
        self.emit(key, sum(self.kept) / len(self.kept))


@pytest.mark.parametrize(
    ("bolt", "expected"),
    [
        # test_stateful_flat_map.py: test_stateful_flat_map
        (Greater, [2, 5, 8, 3]),
        # test_stateful_map.py: test_stateful_map
        (Mean, [2.0, 3.5, 5.0, 2.0, 2.5]),
    ],
)
def test_bolts_with_state(bolt, expected):
    found = emitted([("ALL", n) for n in (2, 5, 8, 1, 3)], lambda s: s.bolt("out", bolt, by_key()))
    assert [value for _, value in found] == expected


# Bytewax: pytests/operators/windowing/test_event_clock.py, test_system_clock.py --------------------------------


@pytest.mark.parametrize(
    ("batches", "watermark"),
    [
        # test_watermark_starts_at_beginning_of_time
        ([], BEGINNING),
        # test_watermark_is_item_timestamp_minus_wait
        ([[7]], 2),
        # test_watermark_advances_in_batch
        ([[7, 10]], 5),
        # test_watermark_does_not_reverse_in_batch
        ([[7, 3]], 2),
    ],
)
def test_the_watermark_is_the_latest_time_less_the_wait(batches, watermark):
    clock = Clock(EventTime(lambda value: value, lateness=5), ManualClock(), of_bolt=False)
    for batch in batches:
        clock.observe(batch)
    assert clock.watermark == watermark


def test_the_watermark_at_the_end_is_the_end_of_time():
    """test_event_clock.py, test_watermark_is_end_of_time_on_eof and test_watermark_doesnt_overflow_after_eof"""
    merging = Merging()
    merging.add(1, 11)
    found = []
    for told in (2.0, END_OF_TIME, END_OF_TIME):
        merging.read(0, 11, (told, False, -1, (), 0))
        merging.through(0, True)
        found.append(merging.current)
    assert found == [2, END_OF_TIME, END_OF_TIME]


def test_windows_by_the_clock_close_at_the_end(steps):
    """test_system_clock.py, once more test_watermark_is_end_of_time_on_eof, of the other clock"""
    w = steps(TumblingWindow(10), Rows, by="processing")
    w.give("ALL", n=1)
    assert w.end() == [("ALL", (0, 10, (1,)))]


class Together(Bolt):
    """A session by the clock: what comes less than ten seconds from what came before it."""

    def __init__(self):
        self.values = []

    def process(self, key, value):
        self.values.append(value)
        self.timer("over", self.context.now() + 10, by="processing")

    def on_timer(self, name, at):
        self.emit(self.key, self.values)
        self.values = []

    def finish(self):
        self.emit(self.key, self.values)


def test_a_session_by_the_clock():
    """test_session_windower.py, test_session_with_system_clock"""
    found = emitted([("ALL", n) for n in range(10)], lambda s: s.bolt("out", Together, by_key()))
    assert found == [("ALL", list(range(10)))]


# Bytewax: pytests/interval/test_interval.py --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lefts", "rights", "pairs"),
    [
        # test_interval_match
        ([0], [0], [(0, 0)]),
        # test_interval_in_before_gap
        ([0], [-3], [(0, -3)]),
        # test_interval_in_after_gap
        ([0], [3], [(0, 3)]),
        # test_interval_on_before_gap
        ([0], [-5], [(0, -5)]),
        # test_interval_on_after_gap
        ([0], [5], [(0, 5)]),
        # test_interval_multi_pair
        ([0, 5], [3], [(0, 3), (5, 3)]),
        # test_interval_unpaired: in an outer join it is told apart
        ([0], [10], [(0, None), (None, 10)]),
    ],
)
def test_intervals_of_five_before_and_behind(lefts, rights, pairs):
    rows = [("l", "KEY", (f"{at}", at)) for at in lefts] + [("r", "KEY", (f"{at}", at)) for at in rights]

    def build(t, left, right):
        left, right = (side.timed(lambda v: v[-1], lateness=10) for side in (left, right))
        left.join("out", right, within=(5, 5), kind="outer")

    found = [tuple(side and int(side) for side in pair) for _, pair in run(rows, build)]
    assert sorted(found, key=str) == sorted(pairs, key=str)


# Bytewax: pytests/operators/test_join.py, pytests/operators/windowing/test_join_window.py ------------------------

LEFT, RIGHT, THIRD = ("l", "ALL", ("1", 0)), ("r", "ALL", ("2", 1)), ("r", "ALL", ("3", 2))


@pytest.mark.parametrize(
    ("rows", "how", "pairs"),
    [
        # test_join_last_complete, test_join_default_is_last_complete, test_join_window_last_complete
        ([LEFT, RIGHT], {"keep": "last"}, [("1", "2")]),
        # test_join_first_final
        ([LEFT, RIGHT, THIRD], {"keep": "first", "kind": "outer"}, [("1", "2")]),
        # test_join_last_final
        ([LEFT, RIGHT, THIRD], {"keep": "last", "kind": "outer"}, [("1", "3")]),
        # test_join_product_final
        (
            [LEFT, ("l", "ALL", ("2", 1)), ("r", "ALL", ("3", 1)), ("r", "ALL", ("4", 2))],
            {"kind": "outer"},
            [("1", "3"), ("1", "4"), ("2", "3"), ("2", "4")],
        ),
    ],
)
def test_modes_of_joins(rows, how, pairs):
    found = run(rows, lambda t, a, b: t.join("out", [a, b], SessionWindow(10), time=lambda v: v[-1], **how))
    assert sorted(pair for _, pair in found) == sorted(pairs)
