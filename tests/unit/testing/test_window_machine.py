"""The proof of windows: while units grow, shrink and move as Hypothesis likes, what windows hold is what a batch computation says.

Rows come no later than is allowed, so none may be late, neither in the first windows nor in those behind them: a watermark may never
pass a row. `ESAULT_PROOF=2000` runs so many examples of each machine.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule
from test_change_machine import EXAMPLES, Fed
from walk import Walk, prove
from windowed import LATENESS, again_of, chain, gathered, sessions_of, windows_of

from esault.messages.settings import Settings
from esault.testing import LocalRuntime
from esault.windows import SessionWindow, SlidingWindow, TumblingWindow

pytestmark = pytest.mark.usefixtures("subscales")

UNITS = ["pass", "window", "again"]


class Windows(Walk):
    """Of one kind of window."""

    must = ("change", "checkpoint")

    window = TumblingWindow(10)
    again = SlidingWindow(40, 20)
    apart = True
    #: what rows pass through before
    passing: dict = {}

    def expected(self, rows):
        return windows_of(self.window, rows)

    @initialize(seed=st.integers(0, 1 << 30), delivery=st.sampled_from(["alo", "alo", "none", "eo"]))
    def begin(self, seed, delivery):
        self.feed: dict[str, Any] = {"rows": [], "ended": False}
        self.time = 0
        self.frozen: int | None = None
        options = Settings(delivery=delivery, max_pending=4, root_rows=16, frame_rows=8, watch_values=False)
        topology = chain(
            Fed(self.feed),
            self.window,
            self.again,
            parallelism=2 if self.apart else 1,
            apart=self.apart,
            **self.passing,
        )
        self.local = LocalRuntime(topology, seed=seed, settings=options)
        self.local.run_for(0.01)

    @rule(
        rows=st.lists(
            st.tuples(st.sampled_from("abcdefgh"), st.integers(0, LATENESS), st.integers(0, 6)), min_size=1, max_size=40
        )
    )
    def emit(self, rows):
        for key, behind, further in rows:
            self.time += further
            self.feed["rows"].append((key, {"at": self.time - behind, "n": len(self.feed["rows"])}))

    @rule(unit=st.sampled_from(UNITS), which=st.integers(0, 9), what=st.sampled_from(["split", "merge", "move"]))
    def change(self, unit, which, what):
        self.wish(unit, what, self.owner(unit, which))

    @rule(unit=st.sampled_from(UNITS), n=st.integers(1, 4))
    def scale(self, unit, n):
        self.wish(unit, "scale", n)

    @rule(unit=st.sampled_from(["window", "window", "again", "pass"]), which=st.integers(0, 9))
    def freeze(self, unit, which):
        """One process stands still while the others go on, and meanwhile units may change: owners come unevenly far."""
        owner = self.owner(unit, which)
        if self.frozen is None and self.local.lives(owner):
            self.local.freeze(owner)
            self.frozen = owner

    @precondition(lambda self: self.frozen is not None)
    @rule()
    def thaw(self):
        if self.frozen is not None and self.local.lives(self.frozen):
            self.local.thaw(self.frozen)
        self.frozen = None

    @precondition(lambda self: self.local.driver.settings.delivery == "eo")
    @rule()
    def checkpoint(self):
        self.keep()

    def certain(self):
        self.begin(seed=1, delivery="eo")
        self.emit(rows=[(key, 0, 1) for key in "abcdefgh"] * 5)
        self.go_on(steps=20)
        self.checkpoint()
        self.local.run_for(1.0)
        self.scale(unit="window", n=3)
        self.teardown()

    def teardown(self):
        if not hasattr(self, "local"):
            return
        self.feed["ended"] = True
        self.thaw()
        self.local.run_until_drained(600.0)
        self.done.of(self.local, *self.must)
        self.check()

    def check(self):
        local, report = self.local, self.local.report()
        assert [(row.key, row.value) for row in local.landed("late")] == []
        assert [(row.key, row.value) for row in local.landed("more-late")] == []
        assert report.units["window"].late == report.units["again"].late == 0
        expected = self.expected(self.feed["rows"])
        assert gathered([(row.key, row.value) for row in local.landed("table")]) == expected
        assert sorted((row.key, row.value) for row in local.landed("more")) == again_of(self.again, expected)
        assert report.roots.replayed == 0
        assert report.roots.open == 0


class Slid(Windows):
    window = SlidingWindow(15, 6)
    again = TumblingWindow(9)


class Sessions(Windows):
    window = SessionWindow(5)

    def expected(self, rows):
        return sessions_of(5, rows)


class AtTheEdge(Windows):
    """Time is read right before the window."""

    apart = False


@pytest.mark.parametrize("machine", [Windows, Slid, Sessions, AtTheEdge], ids=lambda m: m.__name__)
def test_whatever_moves_windows_hold_what_a_batch_computation_says(done, machine):
    prove(machine, EXAMPLES, done)


@pytest.mark.parametrize("seed", [9, 38, 48, 49])
def test_the_end_of_a_way_is_not_the_end_of_time(seed):
    """A sender that has switched ends the way to an owner that leaves, and has rows of its keys for the new one; it was found so."""
    machine = Sessions()
    machine.begin(seed=seed, delivery="eo")
    machine.emit([("d", 5, 6), ("c", 3, 4), ("a", 1, 1), ("d", 0, 1), ("c", 2, 3), ("d", 3, 5)])
    machine.scale(unit="window", n=1)
    machine.emit([("g", 5, 4), ("g", 7, 6), ("f", 6, 1), ("d", 7, 0), ("f", 1, 1), ("a", 3, 2), ("b", 4, 1)])
    machine.checkpoint()
    machine.emit([("h", 7, 3), ("g", 2, 3), ("c", 3, 0), ("b", 1, 6), ("d", 1, 1)])
    machine.go_on(steps=22)
    machine.scale(unit="window", n=2)
    machine.scale(unit="pass", n=1)
    machine.go_on(steps=110)
    machine.emit([("f", 5, 6), ("c", 0, 5), ("a", 1, 3), ("g", 4, 1), ("f", 0, 4), ("f", 0, 0), ("d", 0, 0)])
    machine.teardown()
