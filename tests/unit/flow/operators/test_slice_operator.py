"""Windows put together of slices, beside windows that each take all of their rows."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esault import Bolt, Topology
from esault.aggregates import count, max, mean, min, sum
from esault.flow.operators.emitter import Emitter
from esault.flow.operators.operator_parameters import OperatorParameters
from esault.flow.operators.slice_operator import SliceOperator, may_slice
from esault.flow.operators.time_window_operator import TimeWindowOperator
from esault.flow.operators.user_error import UserError
from esault.payload.codec import Codec
from esault.sources import Items
from esault.testing import ManualClock
from esault.topology.context import Context
from esault.windows import SlidingWindow, TumblingWindow

LATE = "late"
#: beyond all places on the ring
LAST = 1 << 70


class Total(Bolt):
    """Of the rows of a window their number, and the sum of their values."""

    def __init__(self):
        self.rows = 0
        self.total = 0

    def process(self, key, value):
        self.rows += 1
        self.total += value["n"]

    def combine(self, other):
        self.rows += other.rows
        self.total += other.total
        other.rows = other.total = -1  # what is handed over is nobody else's

    def finish(self):
        self.emit(self.key, (self.window.start, self.window.end, self.rows, self.total))
        self.rows = self.total = -1


class Seen(Bolt):
    """The values of a window: a state that two objects must not share."""

    def __init__(self):
        self.values = {}

    def process(self, key, value):
        self.values[value["n"]] = True

    def combine(self, other):
        if not self.values:
            self.values = other.values
        else:
            self.values.update(other.values)

    def finish(self):
        self.emit(self.key, (*self.window, sorted(self.values)))


def plan_of(bolt, window):
    t = Topology("t")
    rows = t.spout("rows", Items([]))
    time = lambda value: value["at"]
    if isinstance(bolt, dict):
        rows.aggregate("w", bolt, window, time=time, combine=False)
    else:
        rows.window("w", bolt, window, time=time)
    return t.plan().units["w"]


class Run:
    """An operator, fed by hand, and what came out of it."""

    def __init__(self, cls, plan):
        self._cls, self._plan, self._clock = cls, plan, ManualClock()
        self.out, self.late, self.late_ids, self._rows = [], [], [], 0
        self._begin()

    def _begin(self):
        self._emitter = Emitter("w", [LATE], 0, False, Codec())
        context = Context(unit="w", now=self._clock)
        self.operator = self._cls(OperatorParameters(self._plan, context, self._emitter, Codec(), None, self._clock()))

    def _take(self):
        for name, kept in (("", self.out), (LATE, self.late)):
            out = self._emitter.outs[name]
            kept += zip(out.keys, out.values)
            if self._plan.wants_id and name == LATE:
                self.late_ids += out.ids
            assert len(out.ids) == (len(out.keys) if self._plan.wants_id else 0)
            out.keys.clear()
            out.values.clear()
            out.ids.clear()

    def rows(self, keys, values):
        ids = [f"row-{self._rows + i}" for i in range(len(keys))] if self._plan.wants_id else None
        self._rows += len(keys)
        self.operator.run(0, keys, values, ids)
        self._take()

    def watermark(self, at, close):
        """Time goes on; so many keys, at most, close what is due."""
        self.operator.advance(float(at))
        if close:
            self.operator.close_some(close, 1000, None)
        self._take()

    def states(self):
        old = self.operator.state
        return [(name if name is None else old.key_of(name), old.peek(name)) for name in old.saved_names()]

    def moved(self, cls=None, to=None):
        """All goes to another operator, which may be of the other kind; with `to`, to one that has come so far in time."""
        states, levels = self.states(), self.operator.state.ring_state([(0, LAST)])
        self._cls = cls or self._cls
        self._begin()
        for key, state in states:
            if state is not None and (key is not None or to is None):
                self.operator.state.install_state(key, state)
        if to is not None:
            self.operator.advance(float(to))
            self.operator.state.install_ring_state(levels)

    def end(self):
        for _ in self.operator.finishing():
            pass
        self._take()


KEYS = st.sampled_from(["a", "b", 1, True, ("c", 2)])


@st.composite
def histories(draw):
    """What befalls windows: batches of rows, some late, watermarks, and moves."""
    events, newest = [], draw(st.integers(-30, 30))
    for _ in range(draw(st.integers(1, 12))):
        kind = draw(st.sampled_from(["rows", "rows", "rows", "watermark", "watermark", "move", "change", "came"]))
        if kind == "rows":
            rows = []
            for _ in range(draw(st.integers(1, 8))):
                newest += draw(st.integers(0, 3))
                at = newest - draw(st.one_of(st.integers(0, 2), st.integers(0, 25)))
                at = at + draw(st.sampled_from([0, 0, 0.25]))
                rows.append((draw(KEYS), {"at": at, "n": draw(st.integers(0, 99))}))
            events.append((kind, rows))
        elif kind == "watermark":
            events.append((kind, newest - draw(st.integers(0, 6)), draw(st.sampled_from([0, 1, 100, 100, 100]))))
        elif kind == "came":  # to one that is behind or ahead
            events.append((kind, draw(st.one_of(st.just(-math.inf), st.integers(newest - 20, newest + 5)))))
        else:
            events.append((kind,))
    return events


def kept_apart(rows):
    """Results by key and window; what came of one window in two parts would be there twice."""
    return sorted(rows, key=repr)


AGGREGATES = {"n": count()}


@settings(max_examples=300, deadline=None)
@given(
    histories(),
    st.integers(1, 6),
    st.integers(2, 6),
    st.sampled_from([Total, Seen, AGGREGATES]),
    st.booleans(),
)
def test_slices_give_what_windows_give_that_each_take_all_their_rows(history, every, steps, bolt, ids):
    plan = dataclasses.replace(plan_of(bolt, SlidingWindow(every * steps, every)), wants_id=ids)
    slices, windows = Run(SliceOperator, plan), Run(TimeWindowOperator, plan)
    other = SliceOperator
    for kind, *event in history:
        for run in (slices, windows):
            if kind == "rows":
                keys, values = zip(*event[0])
                run.rows(keys, values)
            elif kind == "watermark":
                run.watermark(*event)
            elif kind == "came":
                run.moved(to=event[0])
            elif kind == "move" or run is windows:
                run.moved()
            else:
                other = TimeWindowOperator if other is SliceOperator else SliceOperator
                run.moved(other)
    slices.end()
    windows.end()
    assert kept_apart(slices.out) == kept_apart(windows.out)
    assert kept_apart(slices.late) == kept_apart(windows.late)
    assert sorted(slices.late_ids) == sorted(windows.late_ids)
    assert not slices.operator.state.names()


@settings(max_examples=100, deadline=None)
@given(histories(), st.integers(1, 6), st.integers(2, 6))
def test_they_come_in_the_same_order(history, every, steps):
    """... where those that are due close before more rows come."""
    plan = plan_of(Total, SlidingWindow(every * steps, every))
    slices, windows = Run(SliceOperator, plan), Run(TimeWindowOperator, plan)
    for run in (slices, windows):
        for kind, *event in history:
            if kind == "rows":
                keys, values = zip(*event[0])
                run.rows(keys, values)
            elif kind == "watermark":
                run.watermark(event[0], 1000)
        run.end()
    assert slices.out == windows.out
    assert slices.late == windows.late


def test_a_state_is_the_same_as_without_slices():
    plan = plan_of(Total, SlidingWindow(6, 2))
    runs = Run(SliceOperator, plan), Run(TimeWindowOperator, plan)
    for run in runs:
        run.rows(("a", "a", "b"), ({"at": 1, "n": 5}, {"at": 4, "n": 6}, {"at": 9, "n": 7}))
        run.watermark(3, 100)
    codec = Codec()
    slices, windows = (
        {key: sorted(codec.unpack(state)) if key is not None else state for key, state in run.states()} for run in runs
    )
    assert slices == windows


class EmitsEach(Total):
    def process(self, key, value):
        super().process(key, value)
        self.emit(key, self.rows)


class LooksAtItsWindow(Total):
    def process(self, key, value):
        self.start = self.window.start


class Opens(Total):
    def open(self, context):
        self.file = None


class WithoutCombine(Bolt):
    def process(self, key, value):
        pass


@pytest.mark.parametrize("bolt", [EmitsEach, LooksAtItsWindow, Opens, WithoutCombine, {"s": sum("n")}, {"m": max("n")}])
def test_a_bolt_that_needs_its_window_before_the_end_has_one_for_each(bolt):
    assert not may_slice(plan_of(bolt, SlidingWindow(10, 2)))


@pytest.mark.parametrize(
    "window",
    [TumblingWindow(10), SlidingWindow(10, 3), SlidingWindow(10, 2.5), SlidingWindow(10, 2, 1), SlidingWindow(1000, 1)],
)
def test_windows_that_are_no_few_whole_slices_take_their_rows_themselves(window):
    assert not may_slice(plan_of(Total, window))


def test_sums_of_what_is_combined_before_it_travels_share_slices():
    t = Topology("t")
    aggregates = {"s": sum("n"), "m": mean("n"), "least": min("n"), "most": max("n"), "n": count()}
    t.spout("rows", Items([])).aggregate("w", aggregates, SlidingWindow(10, 2), time=lambda value: value["at"])
    plan = t.plan().units["w"]
    assert may_slice(plan)


class Hidden(Total):
    def process(self, key, value):
        getattr(self, "em" + "it")(key, 1)


def test_a_bolt_that_emits_before_finish_by_a_hidden_way_is_told_so():
    run = Run(SliceOperator, plan_of(Hidden, SlidingWindow(10, 2)))
    with pytest.raises(UserError, match="emits before finish"):
        run.rows(("a",), ({"at": 1, "n": 5},))
