"""Timers by event time, where the tuples of a bolt have none: `check` finds them, and the run would fail at the first."""

from __future__ import annotations

import contextlib

import pytest

from esault import Bolt, Topology, broadcast, by_key
from esault.cli.main import main
from esault.sources import Items
from esault.topology.doubts import timeless_timers


class Forgets(Bolt):
    def process(self, key, value):
        self.timer("idle", value + 60)

    def on_timer(self, name, at):
        pass


class ByTheClock(Forgets):
    def process(self, key, value):
        self.timer("idle", value + 60, by="processing")


class ByPosition(Forgets):
    def process(self, key, value):
        self.timer("idle", value + 60, "processing")


class SetsNone(Forgets):
    def process(self, key, value):
        pass


class Ruled(Forgets):
    def process_broadcast(self, key, value):
        self.broadcast_state[key] = value


def topology(bolt, timed=True):
    t = Topology("t")
    rows = t.spout("rows", Items([]))
    (rows.timed(float) if timed else rows).bolt("count", bolt, by_key())
    return t


def ruled(rules_timed):
    t = Topology("t")
    rules = t.spout("rules", Items([]))
    payments = t.spout("payments", Items([])).timed(float)
    t.bolt("check", Ruled, {payments: by_key(), rules.timed(float) if rules_timed else rules: broadcast()})
    return t


def test_check_warns_of_it(tmp_path, capsys):
    file = tmp_path / "forgets.py"
    file.write_text(
        "from esault import Bolt, Topology, by_key\nfrom esault.sources import Items\n"
        "class Forgets(Bolt):\n    def process(self, key, value): self.timer('idle', 5.0)\n    def on_timer(self, name, at): pass\n"
        "def topology():\n    t = Topology('t')\n    t.spout('a', Items([])).bolt('b', Forgets, by_key())\n    return t\n"
    )
    with contextlib.suppress(SystemExit):
        main(["check", str(file)])
    said = capsys.readouterr()
    assert "warning: Forgets.process sets a timer by event time, which the tuples of 'b' have not" in said.err
    assert "1 warning" in said.out


def test_where_rules_are_broadcast_they_need_one_too():
    (said,) = timeless_timers(ruled(rules_timed=False).plan())
    assert "the tuples of 'check' have not" in said and "on each of its inputs" in said
    assert timeless_timers(ruled(rules_timed=True).plan()) == []


@pytest.mark.parametrize("bolt", [Forgets, ByTheClock, ByPosition, SetsNone])
def test_what_sets_a_timer_by_event_time_needs_one(bolt):
    said = timeless_timers(topology(bolt, timed=False).plan())
    assert [each.partition(",")[0] for each in said] == (
        ["Forgets.process sets a timer by event time"] if bolt is Forgets else []
    )
    assert timeless_timers(topology(bolt).plan()) == []
