"""Windows whose senders die, without checkpoints: what is sent again is on time."""

from __future__ import annotations

import random

import depth
import pytest
from counting import Landed
from test_change_machine import Fed
from windowed import Gather, Pass, at

from esault import Bolt, Topology, shuffle
from esault.messages.settings import Settings
from esault.testing import LocalRuntime
from esault.windows import SessionWindow, TumblingWindow

KEYS = "abcdefgh"
SEEDS = range(depth.of(200))


class Wider(Bolt):
    """The rows of all windows in a wider one."""

    def __init__(self):
        self.rows = ()

    def process(self, key, value):
        self.rows += value["rows"]

    def finish(self):
        self.emit(self.key, self.rows)


def timed(feed, window, spouts=1, chained=False):
    """Rows that carry time from the source on, or from a step behind it, through a bolt of two sub-units, into windows."""
    t = Topology("timed")
    rows = t.spout("rows", Fed(feed), parallelism=spouts, **({} if chained else {"time": at}))
    if chained:
        rows = rows.map(dict).timed(at)
    windows = rows.bolt("pass", Pass, grouping=shuffle(), parallelism=2).window(
        "window", Gather, window, time=at, parallelism=2
    )
    windows.sink("table", Landed())
    wider = windows.bolt("between", Pass, grouping=shuffle(), parallelism=2).window(
        "wider", Wider, TumblingWindow(50), time=at, parallelism=2
    )
    wider.sink("wide", Landed())
    windows["late"].sink("late", Landed())
    return t


def run(seed, kinds, window, spouts=1, chained=False):
    """A run in which processes of these units die now and then; (rows, run)."""
    order = random.Random(seed)
    feed = {"rows": [], "ended": False}
    settings = Settings(root_rows=16, frame_rows=8, max_pending=32, watch_values=False)
    local = LocalRuntime(timed(feed, window, spouts, chained), seed=seed, settings=settings)
    local.run_for(0.05)
    for part in range(6):
        feed["rows"] += [
            (key, {"at": time, "n": time * len(KEYS) + i})
            for time in range(part * 20, part * 20 + 20)
            for i, key in enumerate(KEYS)
        ]
        for _ in range(order.randrange(150)):
            if not local.step():
                local.wait()
        living = [each for each in local.sub_units(order.choice(kinds)) if local.lives(each)]
        if living:
            local.kill(order.choice(living))
        local.run_for(order.choice((0.0, 0.01, 3.0)))
    feed["ended"] = True
    local.run_until_drained()
    return feed["rows"], local


def check(rows, local):
    """Each row stands in a window. What is late is a repeat: a spout that died reads again from where it was known to stand."""
    found = {number for row in local.landed("table") for number in row.value["rows"]}
    missing = sorted({value["n"] for _, value in rows} - found)
    assert missing == []
    wide = {number for row in local.landed("wide") for number in row.value}
    assert found - wide == set()


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_of_a_bolt_that_died_are_on_time_when_they_are_sent_again(seed):
    check(*run(seed, ["pass"], TumblingWindow(10), chained=bool(seed % 2)))


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_of_a_spout_that_died_are_on_time_when_they_are_read_again(seed):
    check(*run(seed, ["rows", "pass"], TumblingWindow(10), spouts=1 + seed % 2))


@pytest.mark.parametrize("seed", SEEDS)
def test_sessions_wait_as_well(seed):
    check(*run(seed, ["rows", "pass"], SessionWindow(5), spouts=1 + seed % 2))


@pytest.mark.parametrize("seed", SEEDS)
def test_what_windows_emitted_is_on_time_behind_a_bolt_that_died(seed):
    check(*run(seed, ["between"], TumblingWindow(10)))
