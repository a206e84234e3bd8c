"""Ack servers: forked, told of, and replaced, after which what they tracked may start anew."""

from __future__ import annotations

from collections import deque
from itertools import count
from types import SimpleNamespace
from typing import Any

from esault.control.run.acker_assignment import AckerAssignment
from esault.messages.control import AckRouting, Fork, Kill, Stop


def ackers(number=2):
    outbox, numbers = deque(), count(50)
    builds: Any = lambda unit, part: SimpleNamespace(incarnation=next(numbers), part=part)
    made = AckerAssignment(number, builds, outbox)
    made.start()
    return made, outbox


def test_each_is_forked_and_all_must_be_there():
    made, outbox = ackers()
    assert [(to, type(m), m.build.part) for to, m in outbox] == [("keeper", Fork, 0), ("keeper", Fork, 1)]
    made.built(50, "express 50")
    assert not made.ready
    made.built(51, "express 51")
    assert made.ready


def test_everybody_is_told_where_acks_go():
    made, outbox = ackers(1)
    made.built(50, "express 50")
    outbox.clear()
    made.tell({1: "e1", 2: "e2"}, 2, {"lines": 8}, down=(1,), mergers=(9,))
    assert [to for to, _ in outbox] == [1, 2, 50]
    assert outbox[0][1] == AckRouting(1, {1: "e1", 2: "e2"}, ((50, "express 50"),), 2, {"lines": 8}, (1,), (9,))


def test_what_a_dead_one_tracked_starts_anew_once_nobody_sends_to_it():
    made, _ = ackers(1)
    made.built(50, "express 50")
    made.tell({1: "e1", 2: "e2"}, 2, {})
    assert made.died(50) == 0
    assert made.recovered([1, 2]) == []
    made.built(51, "express 51")
    made.tell({1: "e1", 2: "e2"}, 2, {}, newcomer=True)
    made.routed(1, 1)  # the routing before it
    assert made.recovered([1, 2]) == []
    made.routed(1, 2)
    assert made.recovered([1, 2]) == []
    assert made.recovered([1]) == [0]  # 2 is dead
    assert made.recovered([1]) == []


def test_the_death_of_somebody_else_is_nothing():
    made, _ = ackers(1)
    assert made.died(3) is None


def test_all_end_with_the_run_or_when_all_go_back():
    made, outbox = ackers(2)
    made.built(50, "express 50")
    outbox.clear()
    made.stop()
    assert list(outbox) == [(50, Stop(True))]
    outbox.clear()
    made.kill()
    assert list(outbox) == [("keeper", Kill(50)), ("keeper", Kill(51))]
    assert made.ready  # none is waited for
