"""What Flink's tests say of broadcast state beside keyed state; the facts alone, each with its origin."""

from __future__ import annotations

import pytest

from esault import Bolt, Topology, TopologyFailed, broadcast, by_key
from esault.flow.operators.emitter import Emitter
from esault.flow.operators.factory import operator
from esault.flow.operators.operator_parameters import OperatorParameters
from esault.flow.operators.user_error import UserError
from esault.payload.codec import Codec
from esault.sources import Items
from esault.testing import LocalRuntime, ManualClock
from esault.topology.context import Context

KEYED, SENT = 0, 1


class Unit:
    """One sub-unit, which is given rows of both inputs."""

    def __init__(self, bolt):
        t = Topology("unit")
        t.bolt("unit", bolt, {t.spout("rows", Items([])): by_key(), t.spout("rules", Items([])): broadcast()})
        plan = t.plan().units["unit"]
        self.emitter = Emitter("unit", list(plan.streams), 0, False, Codec())
        context = Context(unit="unit", now=ManualClock(0.0))
        self.operator = operator(OperatorParameters(plan, context, self.emitter, Codec(), None, 0.0))

    def rows(self, input, *rows):
        keys, values = zip(*rows)
        self.operator.run(input, keys, values, None)
        column = self.emitter.outs[""]
        emitted = list(zip(column.keys, column.values))
        column.keys.clear()
        column.values.clear()
        return emitted


class Sees(Bolt):
    """Emits, for each tuple, with which keys of the state it was read."""

    def process_broadcast(self, key, value):
        self.broadcast_state[key] = value

    def process(self, key, value):
        self.emit(key, (value, *sorted(self.broadcast_state)))


def test_what_was_broadcast_is_read_by_each_key():
    """CoBroadcastWithKeyedOperatorTest.testBroadcastState: what processElement reads is what processBroadcastElement has put."""
    unit = Unit(Sees)
    assert unit.rows(SENT, ("key.1", 1)) == []
    assert unit.rows(KEYED, ("trigger", 3)) == [("trigger", (3, "key.1"))]
    assert unit.rows(SENT, ("key.2", 2), ("key.3", 3)) == []
    assert unit.rows(KEYED, ("other", 4)) == [("other", (4, "key.1", "key.2", "key.3"))]


class Writes(Sees):
    def process(self, key, value):
        self.broadcast_state[key] = value


def test_a_key_cannot_change_the_state():
    """CoBroadcastWithKeyedOperatorTest.testNoKeyedStateOnBroadcastSide and the read-only context: each side writes its own alone."""
    with pytest.raises(UserError, match="broadcast state is read-only here"):
        Unit(Writes).rows(KEYED, ("a", 1))


class OfKeys(Sees):
    def __init__(self):
        self.n = 0

    def process_broadcast(self, key, value):
        self.n += 1


def test_state_of_keys_is_not_for_the_broadcast_side():
    """CoBroadcastWithKeyedOperatorTest.testNoKeyedStateOnBroadcastSide: state of a key cannot be changed there, and says so."""
    with pytest.raises(UserError, match="stands for no key there"):
        Unit(OfKeys).rows(SENT, ("a", 1))


@pytest.mark.parametrize(("before", "after"), [(3, 2), (2, 3), (1, 10)])
def test_all_sub_units_have_the_same_with_another_parallelism(before, after):
    """CoBroadcastWithKeyedOperatorTest.testScaleUp and testScaleDown: each sub-unit has all that was broadcast before."""
    rules, first = [(f"rule-{n}", n) for n in range(20)], Unit(Sees)
    first.rows(SENT, *rules)
    states = [(first.operator.key_of(name), first.operator.peek(name)) for name in first.operator.saved_names()]
    for _ in range(after):
        unit = Unit(Sees)
        for _ in range(before):  # each of those before had written the same
            for key, state in states:
                unit.operator.install_state(key, state)
        assert unit.rows(KEYED, ("any", 1)) == [("any", (1, *sorted(key for key, _ in rules)))]


class Emits(Sees):
    def process_broadcast(self, key, value):
        self.emit(key, value)


def test_the_broadcast_side_does_not_emit():
    """Otherwise by design: CoBroadcastWithKeyedOperatorTest.testSideOutput emits from processBroadcastElement, once a sub-unit."""
    t = Topology("emits")
    t.bolt("unit", Emits, {t.spout("rows", Items([])): by_key(), t.spout("rules", Items([("a", 1)])): broadcast()})
    with pytest.raises(TopologyFailed, match="process_broadcast is called in each sub-unit"):
        LocalRuntime(t).run_until_drained()
