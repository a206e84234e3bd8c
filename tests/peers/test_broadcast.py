"""What Flink's tests say of broadcast state beside keyed state; the facts alone, each with its origin."""

from __future__ import annotations

from typing import Any

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
        t.bolt(
            "unit",
            bolt,
            {
                t.spout("rows", Items([]), time=lambda value: 0): by_key(),
                t.spout("rules", Items([]), time=lambda value: 0): broadcast(),
            },
        )
        plan = t.plan().units["unit"]
        self.emitter = Emitter("unit", list(plan.streams), 0, False, Codec())
        context = Context(unit="unit", now=ManualClock(0.0))
        self.operator: Any = operator(OperatorParameters(plan, context, self.emitter, Codec(), None, 0.0))

    def rows(self, input, *rows):
        keys, values = zip(*rows)
        self.operator.run(input, keys, values, None)
        return self._take()

    def watermark(self, at):
        service = self.operator.timer_service
        service.advance(at)
        while service.close_some(1, 1, None):
            pass
        return self._take()

    def _take(self):
        column = self.emitter.outs[""]
        emitted = list(zip(column.keys, column.values))
        column.keys.clear()
        column.values.clear()
        return emitted


class Says(Bolt):
    """Emits which key it stands for."""

    def process_broadcast(self, key, value):
        pass

    def process(self, key, value):
        self.emit(key, (self.key, value))


def test_an_object_knows_its_key():
    """CoBroadcastWithKeyedOperatorTest.testKeyQuerying"""
    assert Unit(Says).rows(KEYED, (5, "5"), (42, "42")) == [(5, (5, "5")), (42, (42, "42"))]


class Sees(Bolt):
    """Emits, for each tuple, with which keys of the state it was read."""

    def process_broadcast(self, key, value):
        self.broadcast_state[key] = value

    def process(self, key, value):
        self.emit(key, (value, *sorted(self.broadcast_state)))


class SeesLater(Sees):
    """Reads the state once more when a timer is due."""

    def process(self, key, value):
        super().process(key, value)
        self.timer("later", 41)

    def on_timer(self, name, at):
        self.emit(self.key, (at, *sorted(self.broadcast_state)))


def test_what_was_broadcast_is_read_by_each_key():
    """CoBroadcastWithKeyedOperatorTest.testFunctionWithBroadcastState: by a tuple, and by its timer with what has come until then."""
    unit = Unit(SeesLater)
    assert unit.rows(SENT, *((f"{n}.key", n) for n in (5, 34, 53, 12, 98))) == []
    seen = ["12.key", "34.key", "5.key", "53.key", "98.key"]
    assert unit.rows(KEYED, ("trigger", 13)) == [("trigger", (13, *seen))]
    assert unit.rows(SENT, ("51.key", 51)) == []
    assert unit.watermark(50) == [("trigger", (41, *sorted([*seen, "51.key"])))]


class Writes(Sees):
    def process(self, key, value):
        self.broadcast_state[key] = value


def test_a_key_cannot_change_the_state():
    """The ReadOnlyContext of KeyedBroadcastProcessFunction, for which that file has no test."""
    with pytest.raises(UserError, match="broadcast state is read-only here"):
        Unit(Writes).rows(KEYED, ("a", 1))


class OfKeys(Sees):
    def __init__(self):
        self.n = 0

    def process_broadcast(self, key, value):
        self.n += 1


def test_state_of_keys_is_not_for_the_broadcast_side():
    """CoBroadcastWithKeyedOperatorTest.testNoKeyedStateOnBroadcastSide: there is no key, and that is said."""
    with pytest.raises(UserError, match="stands for no key there"):
        Unit(OfKeys).rows(SENT, ("a", 1))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # testScaleUp
        (2, 3),
        # testScaleDown
        (3, 2),
        (1, 10),
    ],
)
def test_all_sub_units_have_the_same_with_another_parallelism(before, after):
    """Each sub-unit has all that was broadcast before."""
    rules, first = [(f"test{n}", 3) for n in (1, 2, 3)], Unit(Sees)
    first.rows(SENT, *rules)
    old = first.operator.state
    states = [(old.key_of(name), old.peek(name)) for name in old.saved_names()]
    for _ in range(after):
        unit = Unit(Sees)
        for _ in range(before):  # each of those before had written the same
            for key, state in states:
                unit.operator.state.install_state(key, state)
        assert unit.rows(KEYED, ("any", 1)) == [("any", (1, *sorted(key for key, _ in rules)))]


class Emits(Sees):
    def process_broadcast(self, key, value):
        self.emit(key, value)


def test_the_broadcast_side_does_not_emit():
    """Flink's may, and does so once in each sub-unit: see what differs by design."""
    t = Topology("emits")
    t.bolt("unit", Emits, {t.spout("rows", Items([])): by_key(), t.spout("rules", Items([("a", 1)])): broadcast()})
    with pytest.raises(TopologyFailed, match="process_broadcast is called in each sub-unit"):
        LocalRuntime(t).run_until_drained()
