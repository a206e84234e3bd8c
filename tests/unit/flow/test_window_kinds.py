"""Each kind of window and join against a plain batch computation."""

from __future__ import annotations

import heapq
from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from esault import Bolt, Spout, Topology, by_key, dead_letter, skip
from esault.bolts import TopK
from esault.errors import TopologyFailed
from esault.messages.settings import Settings
from esault.sinks import Collect
from esault.sources import Items
from esault.testing import LocalRuntime, ManualClock
from esault.windows import CountWindow, SessionWindow, SlidingWindow, TumblingWindow

SMALL = Settings(root_rows=4, frame_rows=2, max_pending=1)
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
LATENESS = 5


def at(value):
    return value["at"]


class Gather(Bolt):
    def __init__(self):
        self.rows = ()

    def process(self, key, value):
        self.rows = (*self.rows, value["n"])

    def finish(self):
        self.emit(self.key, (*self.window, self.rows))


class Pass(Bolt):
    def process(self, key, value):
        self.emit(key, value)


@st.composite
def tuples(draw, keys="ab", fractions=False):
    """Rows, none later than LATENESS behind the newest."""
    rows, newest = [], draw(st.integers(-50, 50))
    for n in range(draw(st.integers(0, 40))):
        newest += draw(st.integers(0, 8))
        time = newest - draw(st.integers(0, LATENESS))
        if fractions:
            time = time + draw(st.floats(0, 0.999)) - 1
        rows.append((draw(st.sampled_from(keys)), {"at": time, "n": n}))
    return rows


def windowed(rows, window, bolt=Gather, **options):
    """What came out of the windows over these rows, and what was late."""
    t = Topology("t")
    if not isinstance(window, CountWindow):
        options = {"time": at, "lateness": LATENESS + 1, **options}
    out = t.spout("rows", Items(rows)).window("w", bolt, window, parallelism=2, **options)
    out.sink("out", Collect())
    local = LocalRuntime(t, settings=SMALL)
    local.run_until_drained()
    late = [(k, v["n"]) for k, v in local.emitted("w", "late")] if not isinstance(window, CountWindow) else []
    return [(row.key, row.value) for row in local.landed("out")], late


sizes = st.one_of(st.integers(1, 20), st.sampled_from([0.1, 0.3, 1 / 3, 2.5, 7.7]))


@QUICK
@given(tuples(fractions=True), sizes)
def test_each_tuple_is_in_the_one_tumbling_window_that_contains_its_time(rows, size):
    out, late = windowed(rows, TumblingWindow(size))
    assert late == []
    seen = []
    for key, (start, end, numbers) in out:
        assert end - start == pytest.approx(size)
        assert start / size == pytest.approx(round(start / size))
        for number in numbers:
            assert rows[number][0] == key
            assert start <= rows[number][1]["at"] < end
        assert list(numbers) == sorted(numbers)  # as they came
        seen += numbers
    assert sorted(seen) == list(range(len(rows)))
    assert len({(key, start) for key, (start, _, _) in out}) == len(out)


@QUICK
@given(tuples(fractions=True), st.tuples(sizes, sizes).map(sorted))
@example([("a", {"at": 4.6, "n": 0})], [0.1, 0.1])
def test_each_tuple_is_in_all_sliding_windows_that_contain_its_time(rows, every_and_size):
    every, size = every_and_size
    out, late = windowed(rows, SlidingWindow(size, every))
    assert late == []
    expected = {}
    for number, (key, value) in enumerate(rows):
        first = int((value["at"] - size) // every) - 2
        for index in range(first, first + int(size / every) + 6):
            start, end = index * every, index * every + size if size > every else (index + 1) * every
            if start <= value["at"] < end:
                expected.setdefault((key, start, end), []).append(number)
    assert {(key, start, end): list(numbers) for key, (start, end, numbers) in out} == expected
    assert len(out) == len(expected)


@QUICK
@given(tuples(fractions=True), st.one_of(st.integers(1, 12), st.just(0.5)))
def test_sessions_end_where_a_gap_begins_and_get_their_tuples_in_order_of_time(rows, gap):
    out, late = windowed(rows, SessionWindow(gap))
    assert late == []
    expected = []
    for key in "ab":
        session, last = [], None
        for time, number in sorted((v["at"], v["n"]) for k, v in rows if k == key):
            if last is not None and time > last + gap:
                expected.append((key, (rows[session[0]][1]["at"], last + gap, tuple(session))))
                session = []
            session.append(number)
            last = time
        if session:
            expected.append((key, (rows[session[0]][1]["at"], last + gap, tuple(session))))
    assert sorted(out) == sorted(expected)


@QUICK
@given(tuples(), st.integers(1, 5))
def test_count_windows_take_so_many_tuples_and_the_last_one_what_is_left(rows, size):
    out, _ = windowed(rows, CountWindow(size))
    expected = []
    for key in "ab":
        mine = [v["n"] for k, v in rows if k == key]
        expected += [(key, (i, i + size, tuple(mine[i : i + size]))) for i in range(0, len(mine), size)]
    assert sorted(out) == sorted(expected)


@QUICK
@given(tuples(), st.tuples(st.integers(1, 6), st.integers(1, 6)).map(sorted))
def test_sliding_counts_hold_the_last_tuples_every_so_many(rows, every_and_size):
    every, size = every_and_size
    out, _ = windowed(rows, CountWindow(size, every))
    expected = []
    for key in "ab":
        mine = [v["n"] for k, v in rows if k == key]
        ends = [*range(every, len(mine) + 1, every)]
        if len(mine) % every:
            ends.append(len(mine) - len(mine) % every + every)  # what is left is finished as it is
        expected += [(key, (max(0, end - size), end, tuple(mine[max(0, end - size) : end]))) for end in ends]
    assert sorted(out) == sorted(expected)


@QUICK
@given(tuples(fractions=True), st.tuples(sizes, sizes).map(sorted), st.floats(-0.99, 0.99))
def test_windows_that_are_offset_hold_what_their_bounds_say(rows, every_and_size, part):
    every, size = every_and_size
    kind = SlidingWindow(size, every, offset=part * every)
    out, late = windowed(rows, kind)
    assert late == []
    seen = {}
    for key, (start, end, numbers) in out:
        for number in numbers:
            assert rows[number][0] == key
            assert start <= rows[number][1]["at"] < end
            seen[number] = seen.get(number, 0) + 1
    assert set(seen) == set(range(len(rows)))
    starts = {start for _, (start, _, _) in out}
    assert all(
        (start - kind.offset) / every == pytest.approx(round((start - kind.offset) / every), abs=1e-6)
        for start in starts
    )
    for number, (_, value) in enumerate(rows):
        assert seen[number] == len(kind.indices(value["at"]))


@QUICK
@given(tuples(fractions=True), st.lists(st.sampled_from([0.5, 1, 3, 9]), min_size=1, max_size=5))
def test_each_tuple_may_say_how_long_its_session_lasts(rows, gaps):
    def gap(value):
        return gaps[value["n"] % len(gaps)]

    out, late = windowed(rows, SessionWindow(gap))
    assert late == []
    expected = []
    for key in "ab":
        session = None
        for time, number in sorted((v["at"], v["n"]) for k, v in rows if k == key):
            if session is None or time > session[1]:
                session = [time, time, ()]
                expected.append((key, session))
            session[1:] = max(session[1], time + gap({"n": number})), (*session[2], number)
    assert sorted(out) == sorted((key, tuple(session)) for key, session in expected)


@pytest.mark.parametrize("gap", [0, -1, None, "5", float("nan"), True])
def test_a_gap_that_is_none_is_the_tuples_error(gap):
    rows = [("a", {"at": 0, "n": 0})]
    with pytest.raises(
        TopologyFailed, match=r"unit 'w', process, key 'a': ValueError: gap gave .* no number of seconds above 0"
    ):
        windowed(rows, SessionWindow(lambda value: gap))
    assert windowed(rows, SessionWindow(lambda value: gap), on_error=skip())[0] == []


@QUICK
@given(
    tuples(),
    tuples(),
    st.sampled_from(["inner", "left", "outer"]),
    st.sampled_from([TumblingWindow(7), SlidingWindow(10, 4)]),
)
def test_joins_pair_what_shares_key_and_window(left, right, kind, window):
    t = Topology("t")
    sides = [t.spout(name, Items(rows)) for name, rows in (("l", left), ("r", right))]
    joined = sides[0].join("j", sides[1], window, time=(at, at), lateness=LATENESS, kind=kind, parallelism=2)
    joined.sink("out", Collect())
    local = LocalRuntime(t, settings=SMALL)
    local.run_until_drained()
    found = [(row.key, *(None if v is None else v["n"] for v in row.value)) for row in local.landed("out")]
    groups = {}
    for side, rows in enumerate((left, right)):
        for key, value in rows:
            for index in window.indices(value["at"]):
                groups.setdefault((key, index), ([], []))[side].append(value["n"])
    expected = []
    for (key, _), (lefts, rights) in groups.items():
        expected += [(key, a, b) for a in lefts for b in rights]
        expected += [(key, a, None) for a in lefts if not rights and kind != "inner"]
        expected += [(key, None, b) for b in rights if not lefts and kind == "outer"]
    assert sorted(found, key=repr) == sorted(expected, key=repr)
    assert local.report().units["j"].late == 0


def test_a_stream_can_be_joined_with_itself():
    t = Topology("t")
    rows = t.spout("rows", Items([("a", {"at": i, "n": i}) for i in range(10)]))
    even, odd = rows.filter(lambda v: v["n"] % 2 == 0), rows.filter(lambda v: v["n"] % 2 == 1)
    even.join("j", odd, TumblingWindow(2), time=at).map(lambda pair: tuple(v["n"] for v in pair)).sink("out", Collect())
    local = LocalRuntime(t)
    local.run_until_drained()
    assert sorted(row.value for row in local.landed("out")) == [(i, i + 1) for i in range(0, 10, 2)]


@QUICK
@given(tuples(), st.integers(1, 4))
def test_top_k_emits_the_greatest(rows, k):
    out, _ = windowed(rows, TumblingWindow(10), partial(TopK, k, by=lambda value: value["n"] % 5))
    groups = {}
    for key, value in rows:
        groups.setdefault((key, value["at"] // 10), []).append(value)
    expected = [
        (key, tuple(heapq.nsmallest(k, values, key=lambda v: (-(v["n"] % 5), v["n"]))))
        for (key, _), values in groups.items()
    ]
    assert sorted(out, key=repr) == sorted(expected, key=repr)


def test_windows_of_several_inputs_are_told_which():
    class Sides(Bolt):
        def __init__(self):
            self.seen = ()

        def process_stream(self, stream, key, value):
            self.seen = (*self.seen, stream)

        def finish(self):
            self.emit(self.key, tuple(sorted(self.seen)))

    t = Topology("t")
    a = t.spout("a", Items([("k", {"at": 1})]))
    b = t.spout("b", Items([("k", {"then": 2}), ("k", {"then": 12})]))
    both = {a: by_key(), b: by_key()}
    t.window("w", Sides, TumblingWindow(10), both, time={a: at, b: lambda v: v["then"]}).sink("out", Collect())
    local = LocalRuntime(t)
    local.run_until_drained()
    assert [row.value for row in local.landed("out")] == [("a", "b"), ("b",)]


# what is out of order, and what cannot be read -----------------------------------------------------


@pytest.mark.parametrize("window", [TumblingWindow(10), SlidingWindow(10, 5), SessionWindow(3)])
def test_what_is_later_than_allowed_is_on_the_late_stream_and_counted(window):
    fed = [("a", {"at": i, "n": i}) for i in range(40)]
    t = Topology("t")
    out = t.spout("rows", Forever(fed)).window("w", Gather, window, time=at, lateness=3)
    out.sink("out", Collect())
    out["late"].sink("late", Collect())
    local = LocalRuntime(t, settings=SMALL)
    local.run_for(1.0)
    fed += [("a", {"at": 2, "n": 99}), ("b", {"at": 2, "n": 100})]
    local.run_for(1.0)
    local.drain()
    local.run_until_drained()
    # a's session has been open from 0 on: what falls into it belongs to it, and is the last that its object gets
    open_session = isinstance(window, SessionWindow)
    late = [("b", 100)] if open_session else [("a", 99), ("b", 100)]
    assert [(row.key, row.value["n"]) for row in local.landed("late")] == late
    assert local.report().units["w"].late == len(late)
    assert f"{len(late)} late" in str(local.report())
    gathered = [row.value[2] for row in local.landed("out")]
    assert any(99 in rows for rows in gathered) == open_session
    assert not any(100 in rows for rows in gathered)


def test_a_tuple_is_late_by_the_watermark_however_long_windows_take_to_close():
    """What comes out of windows waits for a bolt that stands still, so that most of them are open when late tuples come."""
    keys = [f"k{i}" for i in range(400)]
    outcomes = []
    for window in (TumblingWindow(10), SlidingWindow(10, 5), SlidingWindow(10, 2.5), SessionWindow(3)):
        session = isinstance(window, SessionWindow)  # one that reaches to the watermark takes what falls into it
        for slow in (False, True):
            feed = [(key, {"at": time, "n": time}) for key in keys for time in (1, 6)]
            t = Topology("t")
            made = t.spout("rows", Forever(feed)).window("w", Gather, window, time=at)
            made["late"].sink("late", Collect())
            made.bolt("slow", Pass, grouping=by_key()).sink("out", Collect())
            local = LocalRuntime(t, settings=Settings(root_rows=64, frame_rows=16, max_pending=2, pending_rows=1))
            local.run_for(1.0)
            if slow:
                local.freeze(local.sub_units("slow")[0])
            feed.append(("z", {"at": 15, "n": 15}))  # the very end of a window
            local.run_for(1.0)
            feed += [(key, {"at": time, "n": -time}) for key in keys for time in (7, 12 - session)]
            local.run_for(1.0)
            (core,) = [local._processes[i].core for i in local.sub_units("w")]
            if not (
                slow and session
            ):  # a session comes to its end before a tuple behind it is looked at, and what it emits waits
                assert core.metrics.tuples_in == len(feed)
            if slow:
                assert core.roots.open_count == 2  # no more may come out
                local.thaw(local.sub_units("slow")[0])
                local.run_for(1.0)
            local.drain()
            local.run_until_drained()
            late = sorted((row.key, row.value["n"]) for row in local.landed("late"))
            outcomes.append((late, sorted((row.key, row.value) for row in local.landed("out"))))
            assert local.report().units["w"].late == len(late)
        assert outcomes[-1] == outcomes[-2]
    # What is late for some of its windows only is in the others, and not on the late stream.
    late, out = outcomes[2]
    assert late == sorted((key, -7) for key in keys)
    assert [rows for key, (start, _, rows) in out if key == "k0"] == [(1,), (1, 6), (6,), (-12,)]


BAD = [
    {"n": 1},
    {"at": None, "n": 1},
    {"at": "noon", "n": 1},
    {"at": float("nan"), "n": 1},
    {"at": float("inf"), "n": 1},
]


@pytest.mark.parametrize("window", [TumblingWindow(10), TumblingWindow(0.5), SlidingWindow(10, 5), SessionWindow(3)])
@pytest.mark.parametrize("bad", BAD, ids=repr)
def test_a_time_that_is_none_follows_the_policy_and_moves_no_watermark(window, bad):
    rows = [("a", {"at": i, "n": i}) for i in range(5)] + [("a", bad)] + [("a", {"at": i, "n": i}) for i in range(5, 9)]
    for policy in (skip(), dead_letter("dead.jsonl")):
        out, late = windowed(rows, window, on_error=policy)
        assert late == []
        assert sorted(n for _, (_, _, numbers) in out for n in numbers if window != SlidingWindow(10, 5)) == (
            list(range(9)) if window != SlidingWindow(10, 5) else []
        )
    with pytest.raises(TopologyFailed, match=r"unit 'w', time, key 'a': "):
        windowed(rows, window)


def test_a_clock_that_jumps_ahead_is_not_believed_where_that_is_said():
    now = ManualClock()()
    rows = [("a", {"at": now + i, "n": i}) for i in range(5)]
    rows += [("a", {"at": now + 1e6, "n": 99})] + [("a", {"at": now + i, "n": i}) for i in range(5, 9)]
    out, late = windowed(rows, TumblingWindow(3600), ahead=60.0)
    assert late == [("a", 99)]
    assert sorted(n for _, (_, _, numbers) in out for n in numbers) == list(range(9))


NUMBERS = [Decimal, Fraction, np.float32, np.float64, np.int64, lambda n: Decimal(n) if n % 3 else n]


@pytest.mark.parametrize(
    "window", [TumblingWindow(10), TumblingWindow(2.5), SlidingWindow(10, 5), SessionWindow(3)], ids=repr
)
@pytest.mark.parametrize("number", NUMBERS, ids=lambda n: n.__name__)
def test_a_time_may_be_any_kind_of_number(window, number):
    """What is open when the first of three owners leaves moves, and the watermark closes the rest before the source ends."""
    rows = [("ab"[i % 2], {"at": i - 15 if i < 30 else 3 * i, "n": i}) for i in range(40)]
    plain, _ = windowed(rows, window)
    feed = []
    t = Topology("t")
    made = t.spout("rows", Forever(feed)).window("w", Gather, window, time=lambda v: number(v["at"]), lateness=LATENESS)
    made.sink("out", Collect())
    local = LocalRuntime(t, settings=SMALL)
    feed += rows[:35]
    local.run_for(1.0)
    assert local.landed("out")
    local.split("w", local.sub_units("w")[0])
    local.wait_for_change("w")
    feed += rows[35:]
    local.run_for(1.0)
    local.drain()
    local.run_until_drained()
    assert sorted((row.key, row.value) for row in local.landed("out")) == sorted(plain)
    assert local.report().units["w"].late == 0


@pytest.mark.parametrize(("factor", "said"), [(10**3, "milli"), (10**6, "micro"), (10**9, "nano")])
@pytest.mark.parametrize("window", [TumblingWindow(10), SlidingWindow(10, 5), SessionWindow(3)], ids=repr)
@pytest.mark.parametrize("ahead", [None, 60.0])
def test_times_in_milliseconds_are_told_of_once(caplog, window, factor, said, ahead):
    rows = [("a", {"at": (1_700_000_000 + i) * factor, "n": i}) for i in range(0, 100, 20)]
    options = {} if ahead is None else {"ahead": ahead}
    windowed(rows, window, **options)
    (message,) = [record.getMessage() for record in caplog.records]
    assert message.startswith("unit 'w': times are about 1")
    assert f"look like {said}seconds: write time=lambda value: value['at'] / {factor}," in message


def test_sessions_close_in_the_order_of_their_ends():
    """Whatever their keys: each key has two, and the first ones of all end before the second ones."""
    rows = [(key, {"at": at + n, "n": n}) for at in (0, 100) for n, key in enumerate("cab")]
    t = Topology("t")
    made = t.spout("rows", Items(rows)).window("w", Gather, SessionWindow(5), time=at)
    made.sink("out", Collect())
    local = LocalRuntime(t)
    local.run_until_drained()
    ends = [row.value[1] for row in local.landed("out")]
    assert ends == [5, 6, 7, 105, 106, 107]


@QUICK
@given(tuples(keys="abcdef"), st.integers(1, 12))
def test_all_sessions_of_a_sub_unit_close_in_the_order_of_their_ends(rows, gap):
    t = Topology("t")
    t.spout("rows", Items(rows)).window("w", Gather, SessionWindow(gap), time=at, lateness=LATENESS + 1).sink(
        "out", Collect()
    )
    local = LocalRuntime(t, settings=SMALL)
    local.run_until_drained()
    ends = [row.value[1] for row in local.landed("out")]
    assert ends == sorted(ends)


def at_the_spout(rows):
    t = Topology("t")
    return t, t.spout("rows", rows, time=at, ahead=60.0)


def in_timed(rows):
    t = Topology("t")
    return t, t.spout("rows", rows).map(dict).timed(at, ahead=60.0)


def behind_other_values(rows):
    t, stream = at_the_spout(rows)
    return t, stream.map(dict).filter(lambda value: True)


def behind_a_bolt(rows):
    t, stream = at_the_spout(rows)
    return t, stream.bolt("pass", Pass, grouping=by_key()).bolt("more", Pass, grouping=by_key())


def behind_windows_that_were_late(rows):
    t, stream = at_the_spout(rows)
    first = stream.window("first", Gather, TumblingWindow(1))
    first.sink("first", Collect())
    return t, first["late"]


@pytest.mark.parametrize("window", [TumblingWindow(3600), TumblingWindow(0.5), SlidingWindow(10, 5), SessionWindow(3)])
@pytest.mark.parametrize(
    "place", [at_the_spout, in_timed, behind_other_values, behind_a_bolt, behind_windows_that_were_late]
)
def test_wherever_event_time_starts_ahead_holds_for_the_windows_behind(place, window):
    now = ManualClock()()
    feed = [("a", {"at": now + i, "n": i}) for i in range(5)]
    t, stream = place(Forever(feed))
    made = stream.window("w", Gather, window, time=at)
    made.sink("out", Collect())
    made["late"].sink("late", Collect())
    local = LocalRuntime(t, settings=SMALL)
    feed += [("a", {"at": now + 1e6, "n": 99}), ("b", {"at": now + 1e6, "n": 100})]
    local.run_for(1.0)
    (core,) = [local._processes[i].core for i in local.sub_units("w")]
    assert "b" not in core.operator.elements
    local.drain()
    local.run_until_drained()
    assert sorted(row.value["n"] for row in local.landed("late")) == [99, 100]
    assert not any({99, 100} & set(row.value[2]) for row in local.landed("out"))


def test_each_side_of_a_join_has_an_ahead_of_its_own():
    now = ManualClock()()
    rows = [("a", {"at": now + 100, "n": 1}), ("a", {"at": now + 1000, "n": 2})]
    t = Topology("t")
    all_are, some_are = (t.spout(name, Items(rows), time=at, ahead=a) for name, a in (("all", None), ("some", 500.0)))
    all_are.join("j", some_are, TumblingWindow(3600))["late"].sink("late", Collect())
    local = LocalRuntime(t, settings=SMALL)
    local.run_until_drained()
    assert [row.value["n"] for row in local.landed("late")] == [2]


def test_what_windows_emit_with_their_end_as_its_time_is_believed_behind_them():
    """When the run ends, windows close that end long after now."""
    now = ManualClock()()

    class Ends(Gather):
        def finish(self):
            self.emit(self.key, {"at": self.window.end, "n": len(self.rows)})

    t, stream = at_the_spout(Items([("a", {"at": now, "n": 0})]))
    behind = stream.window("w", Ends, TumblingWindow(3600)).window("v", Gather, TumblingWindow(86400), time=at)
    behind.sink("out", Collect())
    local = LocalRuntime(t)
    local.run_until_drained()
    assert [row.value[2] for row in local.landed("out")] == [(1,)]


def test_errors_of_the_bolt_are_those_of_any_bolt():
    class Fails(Gather):
        def process(self, key, value):
            if value["n"] == 3:
                raise ValueError("three")
            super().process(key, value)

    rows = [("a", {"at": i, "n": i}) for i in range(6)]
    with pytest.raises(TopologyFailed, match="unit 'w', process, key 'a': ValueError: three"):
        windowed(rows, TumblingWindow(10), Fails)
    out, _ = windowed(rows, TumblingWindow(10), Fails, on_error=skip())
    assert out == [("a", (0, 10, (0, 1, 2, 4, 5)))]


def test_an_object_that_uses_the_names_of_the_engine_is_refused():
    class Own(Gather):
        def __init__(self):
            super().__init__()
            self.window = 5

    with pytest.raises(TopologyFailed, match=r"Own sets self\.window, which is the engine's"):
        windowed([("a", {"at": 1, "n": 1})], TumblingWindow(10), Own)


def test_nothing_is_kept_of_keys_whose_windows_have_closed():
    rows = [(f"k{i}", {"at": i, "n": i}) for i in range(200)] + [("k0", {"at": 0, "n": 0})]
    for window in (TumblingWindow(10), SlidingWindow(10, 5), SessionWindow(5)):
        t = Topology("t")
        t.spout("rows", Items(rows)).window("w", Gather, window, time=at).sink("out", Collect())
        local = LocalRuntime(t, settings=SMALL)
        while len(local.emitted("w")) < 190:
            local.step() or local.wait()
        (core,) = [local._processes[i].core for i in local.sub_units("w")]
        assert core.operator.elements.count <= 21
        local.run_until_drained()


def test_ticks_reach_the_objects_of_open_windows():
    class Ticks(Bolt):
        def __init__(self):
            self.ticks = 0

        def process(self, key, value):
            pass

        def tick(self, now):
            self.ticks += 1
            self.emit(self.key, (self.window.start, self.ticks))

    t = Topology("t")
    rows = [("a", {"at": 1}), ("a", {"at": 11}), ("b", {"at": 11})]
    windows = t.spout("rows", Forever(rows)).window("w", Ticks, TumblingWindow(10), time=at, lateness=60, tick_every=1)
    windows.sink("out", Collect())
    local = LocalRuntime(t)
    local.run_for(2.5)
    local.split("w", local.sub_units("w")[0])
    local.run_for(3.0)
    seen = [(row.key, row.value) for row in local.landed("out")]
    for key, start in (("a", 0), ("a", 10), ("b", 10)):
        ticks = [n for k, (s, n) in seen if (k, s) == (key, start)]
        assert ticks == list(range(1, len(ticks) + 1))
        assert len(ticks) >= 4


class Forever(Spout):
    """Gives what stands in a list, whenever it is put there."""

    def __init__(self, rows):
        self.rows = rows
        self.next = 0

    def __deepcopy__(self, memo):
        return type(self)(self.rows)

    def read(self, limit):
        rows = self.rows[self.next : self.next + limit]
        self.next += len(rows)
        return rows
