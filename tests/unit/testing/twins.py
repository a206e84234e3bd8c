"""A word count whose counting bolt has copies, and runs of it that end exactly or say what is wrong."""

from __future__ import annotations

import random
from collections import Counter

from counting import Landed, Nothing, Split, text, totals

from esault import Bolt, Topology, by_key, shuffle
from esault.messages.settings import Settings
from esault.testing import LocalRuntime

LINES = 300


class Tally(Bolt):
    """Puts each word out again, and how often it came at the end."""

    def __init__(self):
        self.total = 0

    def process(self, key, value):
        self.total += value
        self.emit(key, self.total)

    def finish(self):
        self.emit(self.key, self.total, stream="totals")


def twins(counters=2, splitters=2, replicas=2, grouping=None, bolt=Tally):
    t = Topology("twins")
    split = t.spout("lines", Nothing()).bolt("split", Split, grouping=shuffle(), parallelism=splitters)
    streams = ("totals",) if bolt is Tally else ()
    count = split.bolt(
        "count", bolt, grouping=grouping or by_key(), parallelism=counters, replicas=replicas, streams=streams
    )
    count.sink("table", Landed())
    if streams:
        count["totals"].sink("ends", Landed())
    return t


def runtime(seed, lines=LINES, settings=None, **options):
    # With no grace at all what is replayed needlessly behind a death is seen, as on a busy machine.
    chosen = settings or Settings(max_pending=4, root_rows=16, min_grace=0.0)
    return LocalRuntime(twins(**options), spouts={"lines": text(lines, seed)}, seed=seed, settings=chosen)


def step(local):
    if not local.step():
        local.wait()


def until(local, reached, most=30_000):
    """Run until this is so; whether it came to be."""
    for _ in range(most):
        if reached():
            return True
        if local.driver.phase == "ended":
            return False
        step(local)
    raise AssertionError(f"never got there: {local.report()}")


def run_out(local, most=30_000):
    """To the end."""
    until(local, lambda: False, most)
    assert local.driver.failure is None, local.driver.failure
    assert local.report().roots.open == 0


def victim(local, unit, order):
    """Somebody of the unit who lives and owns a part of the ring; None if nobody does."""
    living = [i for i in local.sub_units(unit) if local.lives(i)]
    return order.choice(living) if living else None


def wrong(local, seed, lines=LINES, exactly=True, ends=True):
    """What is not as it must be, in words; nothing if all is."""
    expected = {f"{i}.{j}.0" for i in range(lines) for j in range(8)}
    landed = Counter(row.id.split(":")[1] for row in local.landed("table"))
    found = []
    if expected - set(landed):
        found.append(f"{len(expected - set(landed))} rows are missing")
    if set(landed) - expected:
        found.append(f"rows that were never sent: {sorted(set(landed) - expected)[:3]}")
    if exactly and max(landed.values()) > 1:
        found.append(f"{sum(n - 1 for n in landed.values())} rows came more than once")
    if ends:
        rows = [(row.key, row.value) for row in local.landed("ends")]
        if exactly and dict(rows) != dict(totals(text(lines, seed))):
            found.append(f"totals are {sorted(rows)}, not {sorted(totals(text(lines, seed)).items())}")
        if len(rows) != len(dict(rows)):
            found.append("ends came more than once")
    return found


def whole(local):
    """Whether no copy lacks anything, and nothing is open any more for which one was not there."""
    if any(local.driver.units[name].down for name in local.plan.units if local.plan.units[name].replicas > 1):
        return False
    for seat in local._processes.values():
        roots = seat.core.roots
        last = max(roots._up_after.values(), default=0)
        if roots._down or any(fork.serial <= last for fork in roots._forks.values()):
            return False
    return True


def counted(local):
    """Rows that came out of the copy that is ahead."""
    return max(len(local.emitted(name)) for name in local.plan.units if local.plan.units[name].replicas > 1)


def walk(seed, kills, lines=LINES, between=None, singly=True, **options):
    """Run to the end, killing somebody of these units each time so many rows were counted; a runtime that has ended.

    `singly`: nobody else is killed before all copies are whole.
    """
    local = runtime(seed, lines, **options)
    order = random.Random(seed)
    for count, unit in sorted(kills):
        if not until(local, lambda c=count: counted(local) >= c and (not singly or whole(local))):
            break
        if between is not None:
            between(local, order)
        chosen = victim(local, unit, order)
        if chosen is not None:
            local.kill(chosen)
            subs = local.driver.units[unit].subs
            until(local, lambda: chosen not in subs)  # its death is known
        for _ in range(order.randint(0, 30)):
            step(local)
        if between is not None:
            between(local, order)
    run_out(local)
    return local
