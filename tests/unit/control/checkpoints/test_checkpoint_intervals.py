"""When checkpoints begin: they leave time to change units, and short ones come on time."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.control.checkpoints.checkpoints import BREATH, LONGEST_BACKOFF, PUT_OFF, Checkpoints
from esault.messages.checkpoint import Checkpoint, NotSnapped, Snapped

TICK = 0.1


class Unit:
    """One sub-unit, which is never in the way."""

    name = "count"
    splits = None
    moving = unsettled = finishing = wants_checkpoint = False

    def __init__(self):
        self.subs = {1: SimpleNamespace(incarnation=1, part=0, leaving=False, started_at=0.0, finished=False)}


def walked(every, lasts, seconds):
    """(begun, completed) of all checkpoints and the moments at which a change could begin, looked at each tick."""
    units, told, begun, done, free = [Unit()], [], [], [], []
    checkpoints = Checkpoints(every, 30.0, lambda i, message: told.append(message), lambda cut: None)
    for tick in range(round(seconds / TICK)):
        now = tick * TICK
        if checkpoints.current is not None and now >= begun[-1] + lasts - 1e-9:
            checkpoints.snapped(Snapped(1, checkpoints.current.number), now)
            done.append(now)
        checkpoints.tick(units, now)
        if any(isinstance(message, Checkpoint) for message in told):
            begun.append(now)
        told.clear()
        if checkpoints.current is None and not checkpoints.wanted(now):
            free.append(now)
    return begun, done, free


@pytest.mark.parametrize(
    ("every", "lasts", "between"),
    [
        (1.0, 0.1, 1.0),  # short ones come on time
        (1.0, 0.9, 1.5),  # not at once behind a long one
        (1.0, 2.3, 2.9),  # longer than from one to the next
        (0.2, 0.1, 0.2),
        (0.2, 0.3, 0.6),
        (10.0, 5.0, 10.0),
    ],
)
def test_an_interval_follows_each_that_takes_long(every, lasts, between):
    begun, _, _ = walked(every, lasts, 60.0)
    gaps = {round(after - before, 6) for before, after in pairwise(begun)}
    assert {round(gap / TICK) for gap in gaps} <= {round(between / TICK), round(between / TICK) + 1}, gaps
    assert len(begun) > 3


@given(st.floats(0.1, 5.0), st.floats(0.1, 10.0))
def test_however_long_they_take_there_is_time_for_changes(every, lasts):
    begun, done, free = walked(every, lasts, 60.0)
    assert len(begun) > 1
    for end, after in zip(done, begun[1:], strict=False):
        took = end - begun[done.index(end)]
        assert after - end >= min(BREATH, took) - 1e-6
        assert any(end <= moment < after for moment in free)
    assert max(after - before for before, after in pairwise(begun)) <= max(every, lasts + BREATH + TICK) + PUT_OFF


def test_where_none_can_be_completed_for_a_day_the_run_goes_on():
    """A full disk: the pause between two tries is doubled until it is the longest, and no further."""
    told = []
    checkpoints = Checkpoints(1.0, 30.0, lambda i, message: None, lambda cut: None, troubled=told.append)
    now, tried = 0.0, []
    while len(tried) < 1100:
        checkpoints.tick([Unit()], now)
        if checkpoints.current is not None:
            tried.append(now)
            checkpoints.not_snapped(NotSnapped(1, checkpoints.current.number, "the disk is full"), now)
        now += 1.0
    assert len(told) == 1100
    gaps = [after - before for before, after in pairwise(tried)]
    assert gaps[:3] == [2.0, 4.0, 8.0]
    assert set(gaps[10:]) == {LONGEST_BACKOFF}
