"""A run may last for thousands of changes and deaths: what its cores remember does not grow with them."""

from __future__ import annotations

from collections import Counter, deque
from types import FunctionType, MethodType, ModuleType

import pytest
from small_bolts import Total as Count

from esault import Spout, Topology, by_key
from esault.testing import LocalRuntime

pytestmark = pytest.mark.slow  # not in `make quick`

#: a few bytes for each, for the report or so that late words are known as such
REMEMBERED = {
    "UnitState.changes",
    "UnitState.history",
    "Driver.unit_of",
    "Driver.notices",  # which the actor takes
    "Measurements._over",
    "Places.hosts",
    "Places._units",
    "Senders._express",
    "Inlet.links",  # of those who are gone: the system closes them with the process
}


class Trickle(Spout):
    at = 0.0

    def read(self, limit):
        now = self.context.now()
        if now < self.at:
            return []
        self.at = now + 0.1
        return [(f"k{i % 40}", 1) for i in range(min(limit, 20))]


def topology():
    t = Topology("long")
    once = t.spout("words", Trickle()).bolt("once", Count, grouping=by_key(), parallelism=2)
    once.bolt("twice", Count, grouping=by_key(), parallelism=2)
    return t


def move(local, unit):
    local.move(unit, local.sub_units(unit)[0])
    local.wait_for_change(unit)


def kill(local, unit):
    local.kill(local.sub_units(unit)[0])
    local.run_for(3.0)


def sizes(root):
    """Entries of all containers, by the attribute that they are in."""
    found, seen, waiting = Counter(), set(), [("", root)]
    while waiting:
        name, thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, (str, bytes, type, ModuleType, FunctionType)):
            continue
        seen.add(id(thing))
        if isinstance(thing, dict):
            found[name] += len(thing)
            waiting += [(name, each) for each in thing.values()]
        elif isinstance(thing, (list, tuple, set, frozenset, deque)):
            found[name] += len(thing)
            waiting += [(name, each) for each in thing]
        elif isinstance(thing, MethodType):
            waiting.append((name, thing.__self__))
        else:
            names = {
                *getattr(thing, "__dict__", ()),
                *(n for c in type(thing).__mro__ for n in vars(c).get("__slots__", ())),
            }
            waiting += [(f"{type(thing).__name__}.{n}", getattr(thing, n, None)) for n in names]
    return found


def remembered(what, times):
    local = LocalRuntime(topology())
    local._observe = lambda *args: None  # a test remembers what was emitted
    local.run_for(1.0)
    for _ in range(times):
        for unit in ("once", "twice"):
            what(local, unit)
    local.run_for(35.0)  # longer than anything is kept for its age
    assert local.report().units["twice"].tuples_in > 0
    return sizes([local.driver, [seat.core for seat in local._processes.values()]])


@pytest.mark.parametrize("what", [move, kill])
def test_nothing_grows_with_the_number_of(what):
    few, many = remembered(what, 2), remembered(what, 10)
    grown = {name: (few[name], many[name]) for name in many if many[name] - few[name] >= 8}
    assert {name: sizes for name, sizes in grown.items() if name not in REMEMBERED} == {}
