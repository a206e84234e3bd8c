"""Timers of processing time between two batches: how much in a turn, and when not."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from esault.flow.worker.clock_timers import ClockTimers
from esault.flow.worker.sub_unit import OWN_ROOT_ROWS
from esault.flow.worker.window_closing import CLOSED_IN_A_TURN


class Timers:
    """Timers of names, each due at a time."""

    def __init__(self, *due):
        self.due, self.fired = sorted(due), []

    def due_at(self):
        return self.due[0][0] if self.due else None

    def due_now(self, now):
        return (self.due[0][1],) if self.due and self.due[0][0] <= now else None

    def fire_now(self):
        self.fired.append(self.due.pop(0)[1])


def bench(*due, window=None, rows=lambda: 0):
    timers = Timers(*due)
    shown, emitted = [], []
    bolt = SimpleNamespace(
        operator=SimpleNamespace(timer_service=timers),
        lifecycle=SimpleNamespace(over=False),
        tracked=True,
        roots=SimpleNamespace(credit=True),
        emitter=SimpleNamespace(rows=rows),
        writer=SimpleNamespace(process=shown.append),
        plan=SimpleNamespace(window=window),
        emit_own=emitted.append,
    )
    return ClockTimers(bolt), bolt, timers, shown, emitted


def test_all_that_is_due_is_called_in_order_and_what_it_emits_goes():
    made, _, timers, shown, emitted = bench((1.0, "a"), (2.0, "b"), (9.0, "c"))
    assert not made.fire(0.5)
    assert emitted == []
    assert made.fire(2.0)
    assert timers.fired == ["a", "b"]
    assert shown == [("a",), ("b",)]  # a checkpoint that is on sees the keys before
    assert emitted == [2.0]
    assert made.wake_at() == 9.0
    assert not made.fire(2.0)


def test_where_the_clock_closes_windows_what_stands_under_no_key_changes_too():
    made, _, _, shown, _ = bench((1.0, "a"), window=object())
    made.fire(1.0)
    assert shown == [(None, "a")]


def test_control_need_not_wait_for_all_of_them():
    made, _, timers, _, _ = bench(*((1.0, i) for i in range(CLOSED_IN_A_TURN + 5)))
    assert made.fire(1.0)
    assert len(timers.fired) == CLOSED_IN_A_TURN
    assert made.fire(1.0)
    assert len(timers.fired) == CLOSED_IN_A_TURN + 5


def test_what_is_emitted_goes_when_it_is_a_root_full():
    made, _, timers, _, emitted = bench(
        *((1.0, i) for i in range(9)), rows=lambda: OWN_ROOT_ROWS // 4 * len(timers.fired)
    )
    assert made.fire(1.0)
    assert len(timers.fired) == 4
    assert emitted == [1.0]


@pytest.mark.parametrize("why", ["over", "no credit"])
def test_none_is_called_once_the_sub_unit_is_over_or_while_its_window_is_closed(why):
    made, bolt, timers, _, _ = bench((1.0, "a"))
    if why == "over":
        bolt.lifecycle.over = True
    else:
        bolt.roots.credit = False
    assert not made.fire(5.0)
    assert made.wake_at() == math.inf
    assert not timers.fired
    bolt.tracked = False  # without acks there is no window
    assert made.fire(5.0) is (why == "no credit")


def test_without_timers_nothing_wakes_it():
    assert bench()[0].wake_at() == math.inf
