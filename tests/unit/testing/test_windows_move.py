"""Windows whose keys go to an owner that has come further, or not as far, as the one they come from."""

from __future__ import annotations

import depth
import pytest
from test_change_machine import Fed
from windowed import Gather, again_of, at, chain, gathered, windows_of

from esault import Bolt, Spout, Topology, by_key
from esault.messages.settings import Settings
from esault.sinks import Collect
from esault.testing import LocalRuntime
from esault.windows import TumblingWindow

KEYS = "abcdefgh"
WINDOW, AGAIN = TumblingWindow(10), TumblingWindow(20)


def steps(local, count):
    for _ in range(count):
        if not local.step():
            local.wait()


def put(feed, first, last):
    feed["rows"] += [
        (key, {"at": at, "n": at * len(KEYS) + i}) for at in range(first, last) for i, key in enumerate(KEYS)
    ]


def uneven(seed, which):
    """A run in which one owner stands still until the other one is ahead; (feed, run, the one behind, the one ahead)."""
    feed = {"rows": [], "ended": False}
    settings = Settings(root_rows=16, frame_rows=8, max_pending=400, watch_values=False)
    # Time is read behind the spout, which would hold it for rows that wait at the one that stands still.
    local = LocalRuntime(chain(Fed(feed), WINDOW, AGAIN, apart=False), seed=seed, settings=settings)
    local.run_for(0.05)
    put(feed, 0, 13)
    local.run_for(0.05)
    owners = local.sub_units("window")
    behind = owners[which]
    local.freeze(behind)
    put(feed, 13, 45)
    steps(local, 300)
    return feed, local, behind, owners[1 - which]


def check(feed, local):
    feed["ended"] = True
    local.run_until_drained()
    expected = windows_of(WINDOW, feed["rows"])
    assert [(row.key, row.value) for row in local.landed("late")] == []
    assert [(row.key, row.value) for row in local.landed("more-late")] == []
    assert gathered([(row.key, row.value) for row in local.landed("table")]) == expected
    assert sorted((row.key, row.value) for row in local.landed("more")) == again_of(AGAIN, expected)


@pytest.mark.parametrize("what", ["merge", "move", "split", "scale"])
@pytest.mark.parametrize("seed", range(4 if depth.PROFILE == "deep" else 2))
@pytest.mark.parametrize("from_behind", [True, False])
def test_rows_that_were_on_time_where_they_came_from_are_on_time_where_they_go(seed, what, from_behind):
    feed, local, behind, ahead = uneven(seed, seed % 2)
    if what == "scale":
        local.scale("window", 3)
    else:
        getattr(local, what)("window", behind if from_behind else ahead)
    steps(local, 300)
    local.thaw(behind)
    put(feed, 45, 60)
    steps(local, 300)
    check(feed, local)


def test_the_owners_of_this_test_are_unevenly_far():
    """Else the test before says nothing."""
    apart = 0
    for seed in range(4):
        _, local, behind, ahead = uneven(seed, seed % 2)
        local.thaw(behind)
        standing = [local._processes[owner].core.watermarks.merging.current for owner in (behind, ahead)]
        apart += standing[0] < 10 < 20 < standing[1]
    assert apart


def test_what_was_late_where_it_came_from_is_late_where_it_goes():
    """The new owner, which knows of no time yet, must not open a window again that has closed."""
    feed = {"rows": [], "ended": False}
    local = LocalRuntime(
        chain(Fed(feed), WINDOW, AGAIN, parallelism=1), settings=Settings(root_rows=16, watch_values=False)
    )
    local.run_for(0.05)
    put(feed, 0, 45)
    local.run_for(0.1)
    closed = len(local.landed("table"))
    assert closed == 3 * len(KEYS)
    gone = local.sub_units("window")[0]
    local.move("window", gone)
    feed["rows"] += [(key, {"at": 5, "n": -1}) for key in KEYS]
    local.wait_for_change("window")
    local.run_for(0.1)
    feed["ended"] = True
    local.run_until_drained()
    assert sorted(row.key for row in local.landed("late")) == list(KEYS)
    assert local.report().units["window"].late == len(KEYS)
    starts = [(row.key, row.value["start"]) for row in local.landed("table")]
    assert len(starts) == len(set(starts)) == 5 * len(KEYS)


class Kept(Bolt):
    """Passes tuples on, and keeps something of each key."""

    def __init__(self):
        self.tuples = 0

    def process(self, key, value):
        self.tuples += 1
        self.emit(key, value)


class Moments(Spout):
    """Gives some rows every few milliseconds, whose time is that moment."""

    def __init__(self):
        self.given = 0
        self.last = 0.0

    def read(self, limit):
        now = self.context.now()
        if now < self.last + 0.004:
            return []
        self.last = now
        self.given += 8
        return [(f"k{i % 2000}", {"at": now, "n": i}) for i in range(self.given - 8, self.given)]


def test_time_goes_on_in_the_rests_of_a_change_of_many_keys(monkeypatch):
    monkeypatch.setattr("esault.control.units.subscales.SUBSCALE_KEYS", 100)
    t = Topology("rests")
    moments = t.spout("moments", Moments(), time=at)
    counted = moments.bolt("counted", Kept, grouping=by_key(), parallelism=2)
    counted.window("window", Gather, TumblingWindow(0.01), time=at).sink("table", Collect())
    local = LocalRuntime(t, settings=Settings(watch_values=False, reload_state=False))
    local.run_for(1.5)
    local.scale("counted", 3)
    passed, in_rests = {}, 0
    while local.driver.units["counted"].changing:
        if not local.step():
            local.wait()
        local.clock.advance(0.003)
        for owner in local.sub_units("counted"):
            core = local._processes[owner].core
            on = core.changes.active and passed.get(owner, (False, 0))[0]
            in_rests += on and core.watermarks.passed > passed[owner][1]
            passed[owner] = core.changes.active, core.watermarks.passed
    assert in_rests
    local.drain()
    local.run_until_drained()
    assert local.report().units["window"].late == 0
