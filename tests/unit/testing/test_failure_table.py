"""Each row of the failure table in docs/explanation/rescaling.md: who dies at which step of a change, and what comes of it."""

from __future__ import annotations

import random

import pytest

from esault import Bolt, Sink, Spout, Topology, by_key, shuffle
from esault.messages.settings import Settings
from esault.testing import LocalRuntime

LINES, WORDS = 400, 8


class Nothing(Spout):
    def read(self, limit):
        return []


class Split(Bolt):
    def process(self, key, value):
        for word in value.split():
            self.emit(word, 1)


class Count(Bolt):
    def __init__(self):
        self.total = 0

    def process(self, key, value):
        self.total += value
        self.emit(key, self.total)


class Landed(Sink):
    wants_id = True

    def write(self, rows):
        pass


def begin(seed):
    t = Topology("words")
    split = t.spout("lines", Nothing()).bolt("split", Split, grouping=shuffle(), parallelism=2)
    split.bolt("count", Count, grouping=by_key(), parallelism=2).sink("table", Landed())
    order = random.Random(seed)
    lines = [("f", " ".join(order.choice("abcdefghijklmnop") for _ in range(WORDS))) for _ in range(LINES)]
    local = LocalRuntime(t, spouts={"lines": lines}, seed=seed, settings=Settings(max_pending=4, root_rows=16))
    steps(local, lambda: len(local.emitted("count")) > 200)
    return local


def steps(local, reached):
    for _ in range(100_000):
        if reached():
            return
        if not local.step():
            local.wait()
    raise AssertionError("never got there")


def forking(local, change):
    return change.phase == "forking" and all(local.lives(n) for n in change.news)


def readying(local, change):
    return change.phase == "readying"


def published(local, change):
    return change.phase == "moving" and bool(change.giving)


def aligned(local, change):
    """The old owner has read every barrier and given its rows; state may still be on its way."""
    old = min(change.givers)
    giving = local._seats[old].core.changes._giving if old in local._seats else None
    return change.phase == "moving" and (giving is None or giving._rows_sent)


STEPS = {"forking": forking, "readying": readying, "published": published, "aligned": aligned}


def die(role, step, kind, seed):
    """Kill this role at this step of a change of `count`, and run to the end."""
    local = begin(seed)
    unit = local.driver.units["count"]
    getattr(local, kind)("count", local.sub_units("count")[0])
    change = unit.change
    old, sender = min(change.givers), min(local.driver.units["split"].subs)
    steps(local, lambda: change is not unit.change or STEPS[step](local, change))
    victim = {"new": max(change.news or change.getters), "old": old, "sender": sender}[role]
    if unit.change is not change or not local.lives(victim):
        return None
    local.kill(victim)
    local.run_until_drained(600.0)
    landed = {row.id.split(":")[1] for row in local.landed("table")}
    assert landed >= {f"{i}.{j}.0" for i in range(LINES) for j in range(WORDS)}, "missing"
    unit.table.check()
    assert set(unit.table.owners()) == set(unit.subs)
    assert victim not in unit.subs
    assert local.report().roots.open == 0
    return unit.changes[-1]


@pytest.mark.parametrize("kind", ["split", "merge", "move"])
@pytest.mark.parametrize("step", list(STEPS))
@pytest.mark.parametrize("role", ["new", "old", "sender"])
def test_nothing_is_missing_whoever_dies_when(role, step, kind):
    reached = [record for record in (die(role, step, kind, seed) for seed in range(6)) if record is not None]
    if not reached:
        # a merge makes no new process: it is never forking for longer than it takes to say so
        assert (kind, step) in {("merge", "forking")} or step == "aligned", (kind, step)


@pytest.mark.parametrize("role", ["new", "old"])
@pytest.mark.parametrize("step", ["forking", "readying"])
def test_before_the_table_is_published_the_change_is_dropped(role, step):
    records = [r for r in (die(role, step, "split", seed) for seed in range(4)) if r is not None]
    assert records
    assert all(r.dropped for r in records)
    assert all(r.after == 2 for r in records)


@pytest.mark.parametrize("role", ["new", "old", "sender"])
def test_once_it_is_published_the_change_goes_on(role):
    records = [r for r in (die(role, "published", "split", seed) for seed in range(4)) if r is not None]
    assert records
    assert not any(r.dropped for r in records)
    assert all(r.after == 3 for r in records)


def test_a_senders_death_before_the_table_is_published_lets_the_change_go_on():
    records = [r for r in (die("sender", "readying", "split", seed) for seed in range(4)) if r is not None]
    assert records
    assert not any(r.dropped for r in records)
