"""Aggregates by name, with and without windows, beside plain loops; combined before they travel or not."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from decimal import Decimal

import pytest
from counting import Landed, Nothing
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from slowly import Slowly
from test_bolt_timers import rows_of
from test_change_machine import Fed
from test_checkpoints import walk
from windowed import LATENESS, at, windows_of

from esault import Topology, TopologyError, TopologyFailed, dead_letter, skip
from esault import aggregates as agg
from esault.messages.settings import Settings
from esault.sources import DeadLetters
from esault.state.dead_letter_file import DeadLetterFile
from esault.testing import LocalRuntime
from esault.topology.aggregates.aggregated import Combine
from esault.windows import CountWindow, SessionWindow, SlidingWindow, TumblingWindow

EXACT = {
    "n": agg.count(),
    "sum": agg.sum("n"),
    "mean": agg.mean(lambda value: value["n"]),
    "least": agg.min("n"),
    "most": agg.max("n"),
    "best": agg.top_k(2, "n"),
    "all": agg.collect("n"),
}


def told(numbers, values):
    """By a plain loop, of the rows with these numbers."""
    return {
        "n": len(numbers),
        "sum": sum(numbers),
        "mean": sum(numbers) / len(numbers),
        "least": min(numbers),
        "most": max(numbers),
        "best": [values[n] for n in sorted(numbers, reverse=True)[:2]],
        "all": sorted(numbers),
    }


WINDOWS = [TumblingWindow(10), SlidingWindow(15, 6)]


@pytest.mark.slow
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1 << 30), st.sampled_from(WINDOWS), st.integers(0, 2), st.booleans())
@example(seed=1, window=WINDOWS[0], kills=2, combine=True)
@example(seed=2, window=WINDOWS[1], kills=2, combine=True)
@example(seed=3, window=WINDOWS[0], kills=0, combine=False)
def test_they_are_what_a_plain_loop_says_whatever_befalls_the_run(done, seed, window, kills, combine):
    rows = rows_of(seed, 200)
    t = Topology("t")
    spout = t.spout("rows", Slowly(rows, each=40), time=at, lateness=LATENESS)
    spout.aggregate("unit", EXACT, window, combine=combine, parallelism=2).sink("table", Landed())
    options = Settings(delivery="eo", max_pending=4, root_rows=64, frame_rows=64, reload_state=True)
    local = LocalRuntime(t, seed=seed, settings=options)
    walk(local, random.Random(seed), "unit", kills=kills)
    done.of(local, "change", "checkpoint")
    values = {value["n"]: value for _, value in rows}
    found = {}
    for row in local.landed("table"):
        result = {**row.value, "all": sorted(row.value["all"])}
        place = (row.key, result.pop("start"), result.pop("end"))
        assert place not in found
        found[place] = result
    expected = windows_of(window, rows)
    assert found == {place: told(numbers, values) for place, numbers in expected.items()}


def run(make, rows, **options):
    t = Topology("t")
    make(t.spout("rows", Nothing()))
    local = LocalRuntime(t, spouts={"rows": rows}, **options)
    local.run_until_drained()
    return local


ROWS = [("ab"[i % 2], {"at": i, "n": i}) for i in range(100)]


def test_without_a_window_each_tuple_brings_the_new_state():
    local = run(lambda s: s.aggregate("unit", {"n": agg.count(), "sum": agg.sum("n")}), ROWS)
    found = defaultdict(list)
    for key, value in local.emitted("unit"):
        found[key].append(value)
    assert found["a"] == [{"n": i + 1, "sum": i * (i + 1)} for i in range(50)]


@pytest.mark.parametrize("combine", [True, False])
def test_what_it_knows_is_all_that_its_state_says(combine):
    rows, values = ROWS, {n: {"at": n, "n": n} for n in range(100)}
    options = Settings(root_rows=16, frame_rows=8, reload_state=True)
    window = TumblingWindow(30)
    local = run(lambda s: s.aggregate("unit", EXACT, window, time=at, combine=combine), rows, settings=options)
    found = {}
    for key, value in local.emitted("unit"):
        place = (key, value.pop("start"), value.pop("end"))
        found[place] = {**value, "all": sorted(value["all"])}
    assert found == {
        (key, start, start + 30): told([n for n in range(start, min(start + 30, 100)) if "ab"[n % 2] == key], values)
        for key in "ab"
        for start in (0, 30, 60, 90)
    }


def test_what_is_combined_travels_as_fewer_rows():
    def rows_in(combine):
        local = run(
            lambda s: s.aggregate("unit", {"n": agg.count()}, TumblingWindow(50), time=at, combine=combine), ROWS
        )
        assert sorted(local.emitted("unit"), key=repr) == [
            (key, {"start": start, "end": start + 50, "n": 25}) for key in "ab" for start in (0, 50)
        ]
        return local.report().units["unit"].tuples_in

    assert rows_in(True) <= rows_in(False) / 5
    assert rows_in(False) == 100


def test_a_batch_that_would_not_get_smaller_travels_as_it_is():
    combine = Combine({"n": agg.count()}, TumblingWindow(10), at)
    keys, values = [str(i) for i in range(10)], [{"at": i, "n": i} for i in range(10)]
    assert combine(keys, values, None) == (keys, [(None, None, value) for value in values], None)
    few, rows, ids = ["a"] * 4 + [1, True], [{"at": i % 2, "n": i} for i in range(6)], list("uvwxyz")
    for _ in range(15):
        assert len(combine(few, rows, ids)[0]) == 6
    assert combine(few, rows, ids) == (
        ["a", 1, True],
        [(0, (4,), None), (0, (1,), None), (1, (1,), None)],
        ["u", "y", "z"],
    )


@pytest.mark.parametrize("window", [SessionWindow(5), CountWindow(100)])
def test_windows_that_cannot_be_known_beforehand_take_each_tuple(window):
    time = at if window.timed else None
    local = run(lambda s: s.aggregate("unit", {"n": agg.count()}, window, time=time), ROWS)
    assert sum(value["n"] for _, value in local.emitted("unit")) == 100
    assert local.report().units["unit"].tuples_in == 100


def test_what_is_late_is_told_as_aggregates():
    feed = {"rows": [("a", {"at": 0, "n": 1}), ("a", {"at": 50, "n": 2})], "ended": False}
    t = Topology("t")
    s = t.spout("rows", Fed(feed), time=at).aggregate("unit", {"sum": agg.sum("n")}, TumblingWindow(10))
    s["late"].sink("late", Landed())
    local = LocalRuntime(t)
    local.run_for(1)
    feed["rows"] += [("a", {"at": 1, "n": 5}), ("a", {"at": 2, "n": 6}), ("a", {"at": 51, "n": 7})]
    feed["ended"] = True
    local.run_until_drained()
    assert sum(row.value["sum"] for row in local.landed("late")) == 11
    assert [value["sum"] for _, value in local.emitted("unit")] == [1, 9]


class Sale:
    def __init__(self, paid):
        self.paid = paid


def test_a_field_is_that_of_a_dict_or_of_an_object_and_numbers_stay_what_they_are():
    rows = [("a", Sale(Decimal("0.1"))), ("a", Sale(Decimal("0.2")))]
    local = run(lambda s: s.aggregate("unit", {"paid": agg.sum("paid")}), rows)
    assert local.emitted("unit")[-1] == ("a", {"paid": Decimal("0.3")})


@pytest.mark.parametrize("window", [None, TumblingWindow(1000)])
def test_a_value_without_the_part_is_under_the_policy_of_the_unit(window):
    rows = [("a", {"at": 1, "n": 1}), ("a", {"at": 2}), ("a", {"at": 3, "n": 2})]
    time = at if window else None
    with pytest.raises(
        TopologyFailed, match="unit 'unit', process, key 'a': KeyError: .*has no field 'n'; it has 'at'"
    ):
        run(lambda s: s.aggregate("unit", {"sum": agg.sum("n")}, window, time=time), rows)
    local = run(
        lambda s: s.aggregate("unit", {"n": agg.count(), "sum": agg.sum("n")}, window, time=time, on_error=skip()), rows
    )
    value = local.emitted("unit")[-1][1]
    assert (value["n"], value["sum"]) == (2, 3)


@pytest.mark.parametrize("window", [None, TumblingWindow(1000)])
@pytest.mark.parametrize("bad", [None, "7"])
@pytest.mark.parametrize("place", [0, 1, 40])
@pytest.mark.parametrize("make", [agg.sum, agg.mean, agg.min, agg.max, lambda of: agg.top_k(3, of)])
def test_a_part_that_does_not_fit_is_left_out_alone_wherever_it_comes(window, bad, place, make):
    if bad and make not in (agg.sum, agg.mean) and place == 0:
        return  # text has a least and a greatest: what does not fit is what comes behind it
    rows = [("a", {"at": i % 10, "n": i}) for i in range(60)]
    rows.insert(place, ("a", {"at": 5, "n": bad}))
    aggregates = {"all": agg.collect("n"), "of": make("n"), "n": agg.count()}
    time = at if window else None

    def of_all(rows, **options):
        return run(lambda s: s.aggregate("unit", aggregates, window, time=time, **options), rows)

    local = of_all(rows, on_error=skip(retries=2))
    good = of_all([row for row in rows if row[1]["n"] is not bad])
    assert local.emitted("unit")[-1] == good.emitted("unit")[-1]
    assert local.report().units["unit"].errors == 1


@pytest.mark.parametrize("place", [0, 1])
def test_an_aggregate_that_a_value_does_not_fit_is_named(place):
    rows = [("a", {"at": 1, "paid": 5})]
    rows.insert(place, ("a", {"at": 1, "paid": None}))
    with pytest.raises(TopologyFailed, match=r"TypeError: 'taken', sum\('paid'\): .*None"):
        run(lambda s: s.aggregate("unit", {"n": agg.count(), "taken": agg.sum("paid")}), rows)


@pytest.mark.parametrize("combine", [True, False])
def test_sketches_are_near_the_truth_wherever_they_are_merged(combine):
    pytest.importorskip("datasketches")
    rows = [("a", {"at": i % 1000, "n": (i * 7919) % 5000}) for i in range(20_000)]
    aggregates = {"median": agg.quantile(0.5, "n"), "high": agg.quantile(0.99, "n"), "different": agg.distinct("n")}
    t = Topology("t")
    s = t.spout("rows", Nothing()).aggregate(
        "unit", aggregates, TumblingWindow(1000), time=at, lateness=1000, combine=combine
    )
    s.sink("table", Landed())
    settings = Settings(delivery="eo", watch_values=False, reload_state=True)
    local = LocalRuntime(t, spouts={"rows": rows}, settings=settings)
    local.run_until_drained()
    ((_, found),) = local.emitted("unit")
    assert abs(found["median"] - 2500) < 5000 * 0.03
    assert abs(found["high"] - 4950) < 5000 * 0.03
    assert abs(found["different"] - 5000) < 5000 * 0.06


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("combine", [True, False])
def test_a_dead_letter_is_the_tuple_that_failed_and_counts_in_a_later_run(combine, split, tmp_path):
    bad = {"at": 3, "n": "three"}
    options = {"time": at, "combine": combine, "split_hot_keys": split, "on_error": dead_letter("dead.jsonl")}

    def summed(s):
        s.aggregate("unit", {"count": agg.count(), "sum": agg.sum(lambda v: v["n"] + 0)}, TumblingWindow(30), **options)

    local = run(summed, [*ROWS[:20], ("a", bad)])
    (record,) = local.dead_letters
    assert (record["key"], record["value"], record["event_time"], record["at"]) == ("a", bad, 3, "input:0")
    dead = DeadLetterFile(str(tmp_path / "dead.jsonl"), 1)
    dead.put(record)
    dead.close()
    again = run(lambda s: summed(s.map(lambda v: {**v, "n": 3})), DeadLetters(tmp_path / "dead.jsonl"))
    assert [(key, value["count"], value["sum"]) for key, value in again.emitted("unit")] == [("a", 1, 3)]


@pytest.mark.parametrize("combine", [True, False])
def test_a_quantile_of_no_numbers_is_none_and_spoils_no_other_aggregate(combine):
    nan = float("nan")
    rows = [
        ("a", {"at": 1, "n": nan}),
        ("a", {"at": 2, "n": nan}),
        ("b", {"at": 1, "n": nan}),
        ("b", {"at": 2, "n": 7.0}),
    ]
    aggregates = {"median": agg.quantile(0.5, "n"), "count": agg.count()}
    local = run(lambda s: s.aggregate("unit", aggregates, TumblingWindow(10), time=at, combine=combine), rows)
    found = {key: (value["median"], value["count"]) for key, value in local.emitted("unit")}
    assert math.isnan(found["a"][0]) and found["a"][1] == 2
    assert found["b"] == (7.0, 2)


def test_a_sum_of_truths_is_a_number_also_of_one():
    local = run(lambda s: s.aggregate("unit", {"sum": agg.sum("n")}), [("a", {"n": True}), ("a", {"n": True})])
    assert [(type(value["sum"]), value["sum"]) for _, value in local.emitted("unit")] == [(int, 1), (int, 2)]


def test_a_set_of_values_that_is_small_is_counted_exactly():
    pytest.importorskip("datasketches")
    values = [1, True, "1", b"1", 1.0, None, (1,), 1, "1"]
    local = run(lambda s: s.aggregate("unit", {"n": agg.distinct()}), [("a", value) for value in values])
    assert local.emitted("unit")[-1] == ("a", {"n": 7})


def test_the_plan_names_them():
    t = Topology("t")
    t.spout("rows", Nothing()).aggregate("unit", {"n": agg.count(), "p": agg.sum("paid"), "t": agg.top_k(3, "paid")})
    found = t.plan().units["unit"].aggregates
    assert {name: (of.kind, of.of, of.options) for name, of in found.items()} == {
        "n": ("count", None, {}),
        "p": ("sum", "paid", {}),
        "t": ("top_k", "paid", {"k": 3}),
    }


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda s: s.aggregate("u", {}), "write aggregate"),
        (lambda s: s.aggregate("u", {"n": len}), "no aggregate"),
        (lambda s: s.aggregate("u", {1: agg.count()}), "is a text"),
        (lambda s: s.aggregate("u", {"start": agg.count()}, TumblingWindow(5), time=at), "choose another name"),
        (lambda s: s.aggregate("u", {"n": agg.count()}, time=at), "is for windows"),
        (lambda s: s.aggregate("u", {"n": agg.count()}, TumblingWindow(5)), "nothing says when a tuple"),
        (lambda s: s.aggregate("u", {"n": agg.count()}, TumblingWindow(5), time=at, idle_after=5), "ends by itself"),
        (lambda s: agg.top_k(0), "whole number from 1"),
        (lambda s: agg.sum(5), "is not callable"),
    ],
)
def test_a_mistake_is_told_in_the_call_that_makes_it(call, said):
    with pytest.raises(TopologyError, match=said):
        call(Topology("t").spout("rows", Nothing()))


def test_a_quantile_is_a_share():
    pytest.importorskip("datasketches")
    with pytest.raises(TopologyError, match="a share from 0 to 1"):
        agg.quantile(50)
