"""Operators of a stream, each beside a plain loop: the same rows come out, wherever keys go and whoever dies."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter, defaultdict

import pytest
from counting import Landed, Nothing
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from slowly import Slowly
from test_bolt_timers import Feed, rows_of
from test_change_machine import Fed
from test_checkpoints import walk
from windowed import Pass, at

from esault import Bolt, Topology, TopologyError, TopologyFailed, UsageError, by_key, skip
from esault.messages.settings import Settings
from esault.sinks import Collect
from esault.sources import Items
from esault.testing import LocalRuntime
from esault.windows import CountWindow


def n(value):
    return value["n"]


def colour(value):
    return value["n"] // 3 % 2


def by_rows(rows):
    found = defaultdict(list)
    for key, value in rows:
        found[key].append(value)
    return found


def distinct(rows):
    times, out = defaultdict(list), []
    for key, value in rows:
        if not any(abs(value["at"] - time) < 12 for time in times[key]):
            times[key].append(value["at"])
            out.append((key, value))
    return out


def throttled(rows):
    times, out = defaultdict(list), []
    for key, value in rows:
        if sum(abs(value["at"] - time) < 15 for time in times[key]) < 2:
            times[key].append(value["at"])
            out.append((key, value))
    return out


def debounced(rows):
    out = []
    for key, values in by_rows(rows).items():
        last = {value["at"]: value for value in values}
        out += [(key, value) for t, value in last.items() if not any(t < other < t + 6 for other in last)]
    return out


def changed(rows):
    out = []
    for key, values in by_rows(rows).items():
        out += [
            (key, value)
            for before, value in zip([None, *values], values)
            if not before or colour(before) != colour(value)
        ]
    return out


def paired(rows):
    return [(key, pair) for key, values in by_rows(rows).items() for pair in itertools.pairwise(values)]


def batched(rows):
    return [(key, values[i : i + 3]) for key, values in by_rows(rows).items() for i in range(0, len(values), 3)]


CASES = {
    "distinct": (lambda s: s.distinct("unit", within=12, parallelism=2), distinct),
    "throttle": (lambda s: s.throttle("unit", 2, 15, by="event", parallelism=2), throttled),
    "debounce": (lambda s: s.debounce("unit", 6, by="event", parallelism=2), debounced),
    "changes": (lambda s: s.changes("unit", colour, parallelism=2, idle_after=0.01), changed),
    "pairwise": (lambda s: s.pairwise("unit", parallelism=2), paired),
    "batch": (lambda s: s.batch("unit", 3, parallelism=2), batched),
}


def plain(rows):
    return Counter(repr(row) for row in rows)


@pytest.mark.slow
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1 << 30), st.sampled_from(sorted(CASES)), st.integers(0, 2))
@example(seed=1, case="distinct", kills=2)
@example(seed=2, case="throttle", kills=2)
@example(seed=3, case="debounce", kills=2)
@example(seed=4, case="changes", kills=2)
@example(seed=5, case="pairwise", kills=2)
@example(seed=6, case="batch", kills=2)
def test_it_puts_out_what_a_plain_loop_does_whatever_befalls_the_run(done, seed, case, kills):
    make, loop = CASES[case]
    rows = rows_of(seed, 120)
    t = Topology("t")
    make(t.spout("rows", Slowly(rows), time=at, lateness=7)).sink("table", Landed())
    options = Settings(delivery="eo", max_pending=4, root_rows=16, frame_rows=8, reload_state=True)
    local = LocalRuntime(t, seed=seed, settings=options)
    walk(local, random.Random(seed), "unit", kills=kills)
    done.of(local, "change", "checkpoint")
    assert plain((row.key, row.value) for row in local.landed("table")) == plain(loop(rows))


def run(make, rows, **options):
    t = Topology("t")
    make(t.spout("rows", Nothing()))
    local = LocalRuntime(t, spouts={"rows": rows}, **options)
    local.run_until_drained()
    return local


@pytest.mark.parametrize("case", CASES)
def test_what_it_keeps_is_all_that_its_state_says(case):
    make, loop = CASES[case]
    rows = rows_of(7, 150)
    t = Topology("t")
    make(t.spout("rows", Slowly(rows), time=at, lateness=7)).sink("table", Landed())
    local = LocalRuntime(t, settings=Settings(root_rows=16, frame_rows=8, reload_state=True))
    local.run_until_drained()
    assert plain((row.key, row.value) for row in local.landed("table")) == plain(loop(rows))


NUMBERS = [("k", i) for i in range(20)]


def test_split_gives_each_tuple_to_the_first_that_takes_it():
    def make(s):
        for name, stream in s.split({"small": lambda v: v < 5, "even": lambda v: v % 2 == 0}).items():
            stream.sink(name, Landed())

    local = run(make, NUMBERS)
    found = {name: [row.value for row in local.landed(name)] for name in ("small", "even", "rest")}
    assert found == {
        "small": [0, 1, 2, 3, 4],
        "even": [6, 8, 10, 12, 14, 16, 18],
        "rest": [5, 7, 9, 11, 13, 15, 17, 19],
    }


def test_a_union_is_one_stream_for_steps_bolts_windows_and_sinks():
    def make(s):
        parts = s.split({"even": lambda v: v % 2 == 0})
        both = parts["even"].map(lambda v: v * 10).union(parts["rest"], s.filter(lambda v: v > 18))
        both.map(lambda v: v + 1).sink("out", Landed())
        both.pairwise("pairs").sink("pairs", Landed())
        both.window("window", Pass, CountWindow(2)).sink("windows", Landed())

    local = run(make, NUMBERS)
    expected = [v * 10 if v % 2 == 0 else v for v in range(20)] + [19]
    assert sorted(row.value for row in local.landed("out")) == sorted(v + 1 for v in expected)
    assert len(local.landed("pairs")) == 20
    assert sorted(row.value for row in local.landed("windows")) == sorted(expected)


def test_a_union_of_streams_with_times_has_time():
    def make(s):
        timed = s.map(lambda v: {"at": v, "n": v})
        odd = timed.filter(lambda v: n(v) % 2).timed(at)
        odd.union(timed.filter(lambda v: n(v) % 2 == 0).timed(at)).distinct("first", within=5).sink("out", Landed())

    landed = run(make, [("k", i) for i in range(0, 12, 5)]).landed("out")
    assert sorted(n(row.value) for row in landed) == [0, 5, 10]


def test_what_takes_one_stream_says_so_of_a_union():
    s = Topology("t").spout("rows", Nothing())
    with pytest.raises(TopologyError, match="no single stream"):
        s.union(s.map(n)).join("j", s, within=(1, 1))
    with pytest.raises(TopologyError, match="no stream of topology 't'"):
        s.union(Topology("u").spout("rows", Nothing()))


def test_a_sample_is_a_share_and_with_a_seed_the_same_one():
    rows = [("k", i) for i in range(2000)]
    found = [
        [row.value for row in run(lambda s: s.sample(0.2, seed=7).sink("out", Landed()), rows).landed("out")]
        for _ in range(2)
    ]
    assert found[0] == found[1]
    assert 300 < len(found[0]) < 500
    assert len(run(lambda s: s.sample(1).sink("out", Landed()), NUMBERS).landed("out")) == 20


def names():
    return {1: "one", 2: "two"}


@pytest.mark.parametrize("table", [names(), names], ids=["a mapping", "a function"])
def test_a_lookup_pairs_a_value_with_what_a_table_says_of_it(table):
    rows = [("k", {"n": i}) for i in (1, 2, 3)]
    all_of = run(lambda s: s.lookup(table, n).sink("out", Landed()), rows).landed("out")
    assert [row.value for row in all_of] == [({"n": 1}, "one"), ({"n": 2}, "two"), ({"n": 3}, None)]
    some = run(lambda s: s.map(n).lookup(table, missing="drop").sink("out", Landed()), rows).landed("out")
    assert [row.value for row in some] == [(1, "one"), (2, "two")]


def test_an_answer_serves_its_key_for_a_while():
    asked = []

    async def ask(value):
        asked.append(value)
        return len(asked)

    rows = [(second, key) for second in (0, 1, 2, 5) for key in "ab"]
    t = Topology("t")
    t.spout("rows", Feed(rows, 6)).enrich("who", ask, cache=3).sink("out", Landed())
    local = LocalRuntime(t)
    for each in range(6):
        local.run_for(1)
        if local.driver.phase == "running":
            local.scale("who", 1 + each % 2)
    local.run_until_drained()
    found = by_rows((row.key, row.value) for row in local.landed("out"))
    assert [value for value, _ in found["a"]] == [0, 1, 2, 5]
    assert len(asked) == 4
    for key in "ab":
        answers = [answer for _, answer in found[key]]
        assert answers[0] == answers[1] == answers[2] != answers[3]


def test_without_a_cache_each_tuple_asks():
    async def twice(value):
        return value * 2

    local = run(lambda s: s.enrich("who", twice).sink("out", Landed()), NUMBERS)
    assert [row.value for row in local.landed("out")] == [(i, 2 * i) for i in range(20)]


def clocked(make, rows, lasts=10):
    t = Topology("t")
    make(t.spout("rows", Feed(rows, lasts))).sink("out", Landed())
    local = LocalRuntime(t)
    local.run_until_drained()
    return [(row.key, row.value) for row in local.landed("out")]


def test_by_the_clock_a_batch_is_over_some_seconds_after_its_first():
    rows = [(0, "a"), (1, "a"), (1.5, "b"), (2.5, "a"), (2.6, "a"), (2.7, "a"), (9.9, "b")]
    found = clocked(lambda s: s.batch("unit", 3, 2), rows)
    assert found == [("a", [0, 1]), ("a", [2.5, 2.6, 2.7]), ("b", [1.5]), ("b", [9.9])]


def test_by_the_clock_the_last_of_a_burst_goes_on_when_it_is_quiet():
    rows = [(0, "a"), (0.5, "a"), (1, "a"), (1.2, "b"), (4, "a"), (9.9, "b")]
    found = clocked(lambda s: s.debounce("unit", 1), rows)
    assert found == [("a", 1), ("b", 1.2), ("a", 4), ("b", 9.9)]


def test_by_the_clock_so_many_go_on_in_some_seconds_and_repeats_do_not():
    rows = [(i / 2, "a") for i in range(12)]
    assert [v for _, v in clocked(lambda s: s.throttle("unit", 2, 2), rows)] == [0, 0.5, 2, 2.5, 4, 4.5]
    assert [v for _, v in clocked(lambda s: s.distinct("unit", within=2, by="processing"), rows)] == [0, 2, 4]


def test_what_is_over_and_what_is_late_are_streams_beside():
    def over(s):
        first = s.timed(lambda v: v).throttle("unit", 1, 100, by="event")
        first["throttled"].sink("out", Landed())

    assert [row.value for row in run(over, NUMBERS).landed("out")] == list(range(1, 20))

    feed = {"rows": [("k", 1), ("k", 50)], "ended": False}
    t = Topology("t")
    t.spout("rows", Fed(feed), time=lambda v: v).distinct("unit", within=3)["late"].sink("out", Landed())
    local = LocalRuntime(t)
    local.run_for(1)
    feed["rows"] += [("k", 5), ("k", 48), ("k", 51)]  # the second is a repeat, the last is none that is late
    feed["ended"] = True
    local.run_until_drained()
    assert [row.value for row in local.landed("out")] == [5]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda s: s.split({}), r"write split\("),
        (lambda s: s.split({"rest": n}), "choose another name"),
        (lambda s: s.split({"a": 1}), "is not callable"),
        (lambda s: s.sample(0), "above 0 and at most 1"),
        (lambda s: s.lookup([1]), "is not callable"),
        (lambda s: s.lookup({}, missing="wait"), "'none' or 'drop'"),
        (lambda s: s.distinct("u", within=5), r"write \.timed\("),
        (lambda s: s.distinct("u", within=0, by="processing"), "above 0"),
        (lambda s: s.distinct("u", within=5, by="wall"), "'event' or by 'processing'"),
        (lambda s: s.throttle("u", 0, 5), "whole number of tuples"),
        (lambda s: s.batch("u", 2, -1), "above 0"),
        (lambda s: s.changes("u", 5), "is not callable"),
        (lambda s: s.enrich("u", n), "write `async def`"),
    ],
)
def test_a_mistake_is_told_in_the_call_that_makes_it(call, said):
    with pytest.raises(TopologyError, match=said):
        call(Topology("t").spout("rows", Nothing()))


def test_what_the_key_of_distinct_raises_is_under_the_policy_of_the_unit():
    t = Topology("first")
    rows = t.spout("rows", Items([("a", {"n": 1}), ("a", {}), ("b", {"n": 1}), ("c", {"n": 2})]))
    rows.distinct("distinct", key=n, within=60, by="processing", on_error=skip())
    local = LocalRuntime(t)
    local.run_until_drained()
    assert local.emitted("distinct") == [(1, {"n": 1}), (2, {"n": 2})]
    assert local.report().units["rows"].errors == 1


def test_a_step_that_is_an_object_is_named_by_its_class():
    t = Topology("named")
    t.spout("rows", Items([("a", {})])).lookup({1: "one"}, of=n).sink("out", Collect())
    with pytest.raises(TopologyFailed, match=r"step '\w+\.map' \(Lookup\), key 'a': KeyError: 'n'"):
        LocalRuntime(t).run_until_drained()


def test_known_answers_stand_behind_those_that_are_waited_for():
    asked = []

    async def ask(value):
        asked.append(value)
        await asyncio.sleep(0)
        return f"{value}!"

    rows = [("ab"[i % 2], i) for i in range(40)]
    local = run(lambda s: s.enrich("who", ask, cache=60).sink("out", Landed()), rows)
    found = by_rows((row.key, row.value) for row in local.landed("out"))
    assert asked == [0, 1]
    assert found["a"] == [(i, "0!") for i in range(0, 40, 2)] and found["b"] == [(i, "1!") for i in range(1, 40, 2)]


def test_what_fails_where_the_answer_is_known_is_under_the_policy_of_the_unit():
    async def ask(value):
        return "found"

    t = Topology("known")
    rows = t.spout("rows", Items([("a", {"n": 1}), ("a", {}), ("a", {"n": 2}), ("a", {}), ("a", {"n": 3})]))
    rows.enrich("who", ask, of=n, cache=60, on_error=skip()).sink("out", Landed())
    local = LocalRuntime(t)
    local.run_until_drained()
    assert [row.value for row in local.landed("out")] == [({"n": i}, "found") for i in (1, 2, 3)]
    assert local.report().units["who"].errors == 2


def test_a_sink_behind_a_union_has_one_sub_unit_so_that_rows_of_a_key_keep_their_order():
    t = Topology("both")
    one = t.spout("one", Items([("a", n) for n in range(300)]))
    other = t.spout("other", Items([("b", n) for n in range(300)]))
    one.union(other).sink("out", Landed())
    local = LocalRuntime(t)
    with pytest.raises(UsageError, match="out"):
        local.scale("out", 3)
    local.run_until_drained()
    found = by_rows((row.key, row.value) for row in local.landed("out"))
    assert found == {"a": list(range(300)), "b": list(range(300))}


def test_an_object_of_an_async_bolt_that_cannot_be_made_is_under_the_policy_of_the_unit():
    made = []

    class Shy(Bolt):
        def __init__(self):
            made.append(1)
            if len(made) < 3:
                raise ValueError("away")

        async def process(self, key, value):
            self.emit(key, value)

    t = Topology("shy")
    t.spout("rows", Items([("a", i) for i in range(5)])).bolt("shy", Shy, by_key(), on_error=skip()).sink(
        "out", Landed()
    )
    local = LocalRuntime(t)
    local.run_until_drained()
    assert [row.value for row in local.landed("out")] == [2, 3, 4] and local.report().units["shy"].errors == 2
