"""The actor of a sub-unit, without an actor system."""

from __future__ import annotations

from types import SimpleNamespace

from esault.runtime.messages import ChildSpec, Messages
from esault.runtime.worker.sub_unit_actor import SubUnitActor


def test_what_the_driver_says_before_the_keeper_wakes_it_is_not_lost():
    """Two senders, two connections: which of them is read first nobody knows."""
    build = SimpleNamespace(unit="count", incarnation=3)
    actor = SubUnitActor(ChildSpec(SimpleNamespace(clock_offset=0.0, name="t"), build, None))
    try:
        actor.receiveMsg_Messages(Messages(("first", "second")), None)
        assert list(actor._loop.messages) == ["first", "second"]
    finally:
        actor._waker.close()
        actor._loop._waker.close()
