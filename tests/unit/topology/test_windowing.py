"""What a topology's calls say about windows and event time, and what they refuse."""

from __future__ import annotations

import math
from functools import partial

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from esault import BatchBolt, Bolt, Spout, Topology, TopologyError, by_key, partial_key, shuffle
from esault.bolts import TopK
from esault.topology.drawing import draw, mermaid
from esault.windows import CountWindow, SessionWindow, SlidingWindow, TumblingWindow


class Numbers(Spout):
    def read(self, limit):
        return []


class Same(Bolt):
    def process(self, key, value):
        self.emit(key, value)


class Rows(BatchBolt):
    def process_batch(self, rows):
        pass


def at(value):
    return value["at"]


@pytest.fixture
def t():
    return Topology("windows")


@pytest.fixture
def rows(t):
    return t.spout("rows", Numbers())


def refused(text):
    return pytest.raises(TopologyError, match=text)


@pytest.mark.parametrize("size", [0, -1, math.inf, math.nan, True, "60", None])
def test_sizes_that_are_none(size):
    for make in (
        TumblingWindow,
        SessionWindow,
        lambda s: SlidingWindow(s, 1),
        lambda s: SlidingWindow(1, s),
        CountWindow,
    ):
        with refused("must be a "):
            make(size)


def test_sliding_windows_leave_no_gap():
    with refused("every=20 is greater than size=10"):
        SlidingWindow(10, 20)


def test_what_a_window_needs(t, rows):
    with refused("unit 'w': TumblingWindow lacks its size"):
        rows.window("w", Same, TumblingWindow, time=at)
    with refused(r"unit 'w': 60 \(int\) is no window; write .*Window"):
        rows.window("w", Same, 60, time=at)
    with refused("unit 'w': nothing says when a tuple of 'rows' happened; write time=lambda value"):
        rows.window("w", Same, TumblingWindow(60))
    with refused("unit 'w', time: 5 .* is not callable"):
        rows.window("w", Same, TumblingWindow(60), time=5)
    with refused("unit 'w': lateness=-1 is below 0"):
        rows.window("w", Same, TumblingWindow(60), time=at, lateness=-1)
    with refused("unit 'w': lateness is a number of seconds, not '1'"):
        rows.window("w", Same, TumblingWindow(60), time=at, lateness="1")
    with refused("unit 'w': idle=0 must be"):
        rows.window("w", Same, TumblingWindow(60), time=at, idle=0)
    with refused("unit 'w': a BatchBolt has one object for all keys"):
        rows.window("w", Rows, TumblingWindow(60), time=at)
    with refused("unit 'w': the stream 'late' is there without being declared"):
        rows.window("w", Same, TumblingWindow(60), time=at, streams=("late",))
    with refused("unit 'w': time plays no part in a CountWindow; leave out time"):
        rows.window("w", Same, CountWindow(3), time=at)
    with refused("leave out lateness and idle"):
        rows.window("w", Same, CountWindow(3), lateness=1, idle=2)
    for grouping in (shuffle(), partial_key()):
        with refused(r"unit 'w', input 'rows': windows have an object per key and window, and .* has not; leave"):
            rows.window("w", Same, TumblingWindow(60), time=at, grouping=grouping)
    # and nothing of all this has left a trace
    rows.window("w", Same, TumblingWindow(60), time=at)
    assert [step.name for step in t.plan().units["rows"].streams[""].steps] == ["rows.timed.w"]


def test_joins_that_make_no_sense(t, rows):
    other = t.spout("other", Numbers())
    with refused("kind='full' is not one of 'inner', 'left', 'right', 'outer'"):
        rows.join("j", other, TumblingWindow(60), time=at, kind="full")
    with refused("share no CountWindow"):
        rows.join("j", other, CountWindow(60))
    with refused("is no stream of topology 'windows'"):
        rows.join("j", Topology("x").spout("y", Numbers()), TumblingWindow(60), time=at)
    with refused("time is one function for both sides, or a pair of them"):
        rows.join("j", other, TumblingWindow(60), time=(at, at, at))


def test_event_time_further_up_is_used_as_long_as_the_values_are_those(t):
    rows = t.spout("rows", Numbers(), time=at, lateness=5)
    rows.key_by(at).filter(bool).window("w", Same, TumblingWindow(60))
    with refused("nothing says when .* further up was for values that have been changed or held back since"):
        rows.map(str).window("x", Same, TumblingWindow(60))
    with refused("unit 'y': event time starts further up for 'rows'; say lateness there, and leave it out here"):
        rows.window("y", Same, TumblingWindow(60), lateness=5)
    with refused("unit 'z': lateness, idle and ahead go with time="):
        t.spout("z", Numbers(), lateness=5)
    plan = t.plan()
    assert plan.units["rows"].watermark_targets == {"w"}
    assert plan.units["w"].watermarks


def test_what_leaves_tuples_out_leaves_their_times_in(t):
    rows = t.spout("rows", Numbers(), time=at, lateness=5)
    rows.distinct("once", within=60).window("w", Same, TumblingWindow(60))
    rows.throttle("few", 1, 60).distinct("first", within=60)
    # The last of a burst goes out behind its time.
    with refused("nothing says when .* further up was for values that have been changed or held back since"):
        rows.debounce("last", 60, by="event").window("x", Same, TumblingWindow(60))
    assert t.plan().units["once"].watermark_targets == {"w"}


def test_watermarks_go_where_a_window_waits_for_them_and_nowhere_else(t):
    rows = t.spout("rows", Numbers(), time=at)
    first = rows.bolt("first", Same, shuffle())
    first.window("w", Same, TumblingWindow(60), time=at)
    first.bolt("beside", Same, shuffle())
    mixed = t.bolt("mixed", Same, {rows: by_key(), t.spout("untimed", Numbers()): by_key()})
    mixed.window("own", Same, TumblingWindow(60), time=at, lateness=1)
    units = t.plan().units
    assert {name: set(unit.watermark_targets) for name, unit in units.items() if unit.watermark_targets} == {
        "rows": {"first"},
        "first": {"w"},
        "mixed": {"own"},
    }
    assert [name for name, unit in units.items() if unit.watermarks] == ["first", "w", "own"]


def test_windows_over_several_inputs(t, rows):
    other = t.spout("other", Numbers())
    both = {rows: by_key(), other: by_key()}
    with refused("time names .*, which is not among inputs"):
        t.window("w", Same, TumblingWindow(5), both, time={rows.map(at): at})
    with refused("nothing says when a tuple of 'other' happened"):
        t.window("w", Same, TumblingWindow(5), both, time={rows: at})
    t.window("w", Same, TumblingWindow(5), both, time={rows: at, other: len})
    assert t.plan().units["w"].window.times == (at, len)


def test_copies_pass_no_watermarks_on(t):
    copied = t.spout("rows", Numbers(), time=at).bolt("copied", Same, by_key(), replicas=2)
    with refused("nothing says when a tuple of 'copied' happened"):
        copied.window("w", Same, TumblingWindow(60))
    copied.window("w", Same, TumblingWindow(60), time=at, lateness=3)
    units = t.plan().units
    assert units["copied~merger"].watermark_targets == {"w"}
    assert not any(units[name].watermark_targets or units[name].watermarks for name in ("rows", "copied", "copied~1"))


def test_windows_are_drawn(t, rows):
    rows.window("w", Same, SlidingWindow(60, 10), time=at)
    rows.join("j", rows.filter(bool), TumblingWindow(0.5), time=at)
    rows.window("top", partial(TopK, 3), CountWindow(5))
    picture = draw(t.plan())
    assert "one object per key and SlidingWindow(size=60, every=10)" in picture
    assert "one object per key and TumblingWindow(0.5)" in picture
    assert "rows.timed.w" in picture
    assert "one object per key and CountWindow(size=5)" in picture
    assert "rows.timed.j" in mermaid(t.plan())


def test_top_k_needs_a_number():
    with refused("TopK: k=0"):
        TopK(0)
    with refused("TopK: by=3 is not callable"):
        TopK(3, by=3)


class Waits(Bolt):
    async def process(self, key, value):
        pass


def test_windows_take_no_async_bolt(rows):
    with refused("unit 'w': its process is async, which windows do not take"):
        rows.window("w", Waits, TumblingWindow(60), time=at)


NUMBER = st.one_of(st.integers(1, 20), st.sampled_from([0.1, 0.3, 0.7, 1.1, 2.5, 1 / 3]))


@given(
    size=NUMBER,
    every=NUMBER,
    part=st.sampled_from([0, 0, 0.5, -0.3]),
    index=st.integers(-(10**10), 10**10),
    beside=st.sampled_from([-math.inf, None, math.inf]),
    end=st.booleans(),
)
@example(size=0.1, every=0.1, part=-0.3, index=-92422, beside=None, end=False)
@example(size=2, every=1 / 3, part=0, index=-275014, beside=None, end=True)
@example(size=1, every=0.1, part=-0.3, index=-163848, beside=-math.inf, end=True)
def test_a_time_is_in_the_windows_whose_bounds_are_around_it_and_in_no_others(size, every, part, index, beside, end):
    """Also a time right at a bound, and the ones beside it, however the bound was rounded."""
    every = min(every, size)
    kind = SlidingWindow(size, every, offset=part * every)
    bound = kind.window(index).end if end else kind.window(index).start
    time = bound if beside is None else math.nextafter(bound, beside)
    numbers = kind.indices(time)
    around = range(numbers[0] - 2, numbers[-1] + 3)
    there = [k for k in around if kind.window(k).start <= time < kind.window(k).end]
    assert list(numbers) == there or (not there and len(numbers) == 1), "rounding leaves no time without a window"


def test_a_count_window_has_whole_numbers_and_leaves_no_tuple_out():
    assert (CountWindow(3).step, CountWindow(3, every=2).step) == (3, 2)
    for size, every in ((0, None), (3, 0), (2.5, None), (True, None), (3, 4)):
        with pytest.raises(TopologyError, match="CountWindow: "):
            CountWindow(size, every=every)
