"""Each kind of window and join against a plain batch computation."""

from __future__ import annotations

import heapq
from functools import partial

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
            if last is not None and time >= last + gap:
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
    assert [(row.key, row.value["n"]) for row in local.landed("late")] == [("a", 99), ("b", 100)]
    assert local.report().units["w"].late == 2
    assert "2 late" in str(local.report())
    assert not any(99 in row.value[2] or 100 in row.value[2] for row in local.landed("out"))


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
        (core,) = [local._seats[i].core for i in local.sub_units("w")]
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
