"""The actor that the processes of a host report to, without an actor system."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from esault.messages.control import Kill
from esault.runtime.actors.actor import HandlerFailed, UnknownMessage
from esault.runtime.messages import ForkedChild, KeeperStarted, Messages
from esault.runtime.worker.supervisor import Supervisor


class Recording(Supervisor):
    def __init__(self):
        super().__init__()
        self.sent = []
        self.failures = []

    def send(self, targetAddr, msg):  # noqa: N803 (Thespian's name)
        self.sent.append((targetAddr, msg))

    def engine_failed(self, text):
        self.failures.append(text)


@pytest.fixture
def actor():
    made = Recording()
    yield made
    made.waker.close()


def test_messages_wait_for_the_process_that_they_are_for(actor):
    actor.deliver(3, ["build"])
    actor.deliver(3, ["table", "start"])
    actor.deliver(4, ["other"])
    assert actor.sent == []
    actor.receiveMsg_ForkedChild(ForkedChild(3, "there"), None)
    assert actor.sent == [("there", Messages(("build", "table", "start")))]
    actor.deliver(3, ["stop"])
    assert actor.sent[1:] == [("there", Messages(("stop",)))]


def test_a_process_for_which_nothing_waits_is_sent_nothing(actor):
    actor.receiveMsg_ForkedChild(ForkedChild(3, "there"), None)
    assert actor.sent == []


def test_a_process_that_a_message_does_not_reach_is_ended(actor):
    actor.keeper = "keeper"
    actor.receiveMsg_ForkedChild(ForkedChild(3, "there"), None)
    actor.undelivered("elsewhere", 1)  # its death is known already
    assert actor.sent == []
    actor.undelivered("there", 2)
    assert actor.sent == [("keeper", Kill(3))]


def test_the_death_of_the_keeper_is_told_once(actor):
    assert not actor.keeper_died()
    process = SimpleNamespace(alive=lambda: True)
    actor.receiveMsg_KeeperStarted(KeeperStarted(process), None)
    assert not actor.keeper_died()
    process.alive = lambda: False
    assert actor.keeper_died()
    assert not actor.keeper_died()


def test_mistakes_of_the_engine_end_the_run_whoever_made_them(actor):
    actor.receiveMsg_UnknownMessage(UnknownMessage("Keeper", "Odd", "Odd()"), None)
    actor.receiveMsg_HandlerFailed(HandlerFailed("Keeper", "Fork", "ValueError: no", "Traceback ..."), None)
    actor._report(HandlerFailed("Recording", "Fork", "ValueError: no", "Traceback: own"))
    assert len(actor.failures) == 3
    assert "Odd()" in actor.failures[0]
    assert "in Keeper at Fork:\nTraceback ..." in actor.failures[1]
    assert "Traceback: own" in actor.failures[2]
