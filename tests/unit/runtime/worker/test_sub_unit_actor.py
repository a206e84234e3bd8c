"""The actor of a sub-unit, without an actor system."""

from __future__ import annotations

import errno
import os
import resource
from types import SimpleNamespace

from esault.runtime.messages import ChildSpec, Messages
from esault.runtime.worker.sub_unit_actor import NOT_BEGUN, UNHEARD, SubUnitActor


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


def test_one_that_finds_no_descriptor_at_its_start_says_so_by_its_exit_code():
    """The keeper tries again then. A death would bring all back to a checkpoint, and three in a row end the run."""
    build = SimpleNamespace(unit="count", incarnation=3)
    pid = os.fork()
    if pid == 0:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
            SubUnitActor(ChildSpec(SimpleNamespace(clock_offset=0.0, name="t"), build, None))
        finally:
            os._exit(1)
    assert NOT_BEGUN[os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])] == errno.EMFILE


def test_one_whose_messages_do_not_reach_the_driver_ends():
    """What it told would be waited for ever, and its death is dealt with."""
    build = SimpleNamespace(unit="count", incarnation=3)
    pid = os.fork()
    if pid == 0:
        try:
            actor = SubUnitActor(ChildSpec(SimpleNamespace(clock_offset=0.0, name="t"), build, "driver"))
            actor.undelivered("keeper", 1)
            actor.undelivered("driver", 1)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == UNHEARD
