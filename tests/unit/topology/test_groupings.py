"""Groupings say of themselves what the engine asks for."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import esault
from esault import Bolt, Grouping, Topology, TopologyError, by_key
from esault.flow.send.route_factory import route
from esault.sources import Items
from esault.topology.grouping import BUILT_IN, Promises, SplitKey
from esault.topology.plan import Edge


def arguments(make):
    """Some numbers for a maker that takes any."""
    needed = [each for each in inspect.signature(make).parameters.values() if each.default is each.empty]
    return tuple(range(3, 3 + len(needed)))


class Same(Bolt):
    def process(self, key, value):
        self.emit(key, value)


class Odd(Grouping):
    def choose(self, key, value, sub_units):
        return key % sub_units


class Claims(Odd):
    promises = Promises(to_several=False)


def plan(grouping):
    t = Topology("t")
    t.spout("in", Items([])).bolt("same", Same, grouping=grouping)
    return t.plan()


def test_the_makers_make_what_they_stand_for():
    assert {make.__name__: kind.__name__ for kind, make in BUILT_IN.items()}.items() >= {
        "by_key": "ByKey",
        "shuffle": "Shuffle",
        "broadcast": "Broadcast",
        "single": "Single",
        "partial_key": "PartialKey",
    }.items()


@pytest.mark.parametrize(("kind", "make"), BUILT_IN.items(), ids=lambda each: each.__name__)
def test_each_is_written_as_it_is_made(kind, make):
    made = make(*arguments(make))
    assert type(made) is kind
    assert repr(made) == f"{make.__name__}({', '.join(map(repr, arguments(make)))})"
    assert made == make(*arguments(make)) and hash(made) == hash(make(*arguments(make)))


def test_state_moves_with_its_key_where_the_place_of_the_key_decides():
    for kind in BUILT_IN:
        assert kind.promises.keyed == kind.objects.endswith("key")
        assert kind.promises.keyed or not kind.promises.whole_keys


@pytest.mark.parametrize("make", BUILT_IN.values(), ids=lambda make: make.__name__)
def test_each_has_a_route_of_the_engine_or_chooses(make):
    made = make(*arguments(make))
    chooses = type(made).choose is not Grouping.choose
    assert chooses or type(route("u", Edge("t", 0, made), 10)) is not type(route("u", Edge("t", 0, Odd()), 10))


def test_one_of_ones_own_may_send_a_tuple_to_several():
    assert Odd().promises == Promises()
    assert Odd().promises.to_several
    assert plan(Odd()).units["same"].objects == "sub-unit"


def test_one_of_ones_own_promises_nothing():
    with pytest.raises(TopologyError, match="Claims says `promises`"):
        plan(Claims())


def test_replicas_name_the_groupings_that_they_take():
    t = Topology("t")
    stream = t.spout("in", Items([]))
    with pytest.raises(TopologyError, match=r"a bolt with replicas takes by_key\(\) or shuffle\(\)"):
        stream.bolt("same", Same, grouping=Odd(), replicas=2)
    stream.bolt("keyed", Same, grouping=by_key(), replicas=2)


def test_the_engine_asks_a_grouping_for_its_promises_and_not_for_its_class():
    root = Path(esault.__file__).parent
    names = "|".join(kind.__name__ for kind in (*BUILT_IN, SplitKey))
    asking = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if re.search(rf"^from esault\.topology\.grouping import .*\b({names})\b", path.read_text(), re.M)
    }
    # where one is told from a user's own, where one is made, and where each has its route
    assert asking == {"topology/inputs.py", "topology/split_keys.py", "flow/send/route_factory.py"}
