"""What waits for events in a process of the actor system."""

from __future__ import annotations

import errno
import os
import selectors
from datetime import timedelta
from types import SimpleNamespace

from thespian.system.transport import Thespian__UpdateWork, TransmitIntent

from esault.runtime.actors import descriptors
from esault.runtime.actors.descriptors import selector
from esault.runtime.actors.processes import Manager
from esault.runtime.process.descriptors import Reserve


def test_a_selector_without_descriptors_where_none_is_left(monkeypatch):
    def none_left():
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(selectors, "DefaultSelector", none_left)
    read, write = os.pipe()
    with selector() as waits:
        waits.register(read, selectors.EVENT_READ)
        assert not waits.select(0)
        os.write(write, b"x")
        assert [key.fd for key, _ in waits.select(0)] == [read]
    os.close(read)
    os.close(write)


def test_what_waits_for_a_message_before_it_looks_again_though_the_socket_of_that_one_is_gone(monkeypatch):
    class Intent(TransmitIntent):
        pass

    monkeypatch.setattr(descriptors, "_LOOK_AGAIN", timedelta(seconds=5))
    descriptors.look_again(Intent)
    intent = Intent("there", "message")
    intent.awaitingTXSlot()
    assert not intent.timeToRetry(False)
    assert timedelta(seconds=4) < intent.delay() <= timedelta(seconds=5)
    assert intent.timeToRetry(True)  # the socket can be had
    assert not hasattr(intent, "_awaitingTXSlot")
    monkeypatch.setattr(descriptors, "_LOOK_AGAIN", timedelta(0))
    intent.awaitingTXSlot()
    assert intent.delay() == timedelta(0)
    assert intent.timeToRetry(False)
    assert not hasattr(intent, "_awaitingTXSlot")


class Transport:
    """As much of Thespian's as is replaced."""

    _XMITStepRetry = 6

    def new_socket(self, op, *args, **kw):
        raise AssertionError("it closes sockets that are idle")

    def interrupt_wait(self):
        pass

    def _next_XMIT_1(self, intent):
        intent.socket = self.new_socket(open_none)

    def _nextTransmitStep(self, intent):
        return "later"


def open_none():
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def test_a_message_that_finds_no_descriptor_is_sent_later_and_no_socket_is_closed_for_it(monkeypatch):
    monkeypatch.setattr(descriptors, "reserve", Reserve(0))
    descriptors.install(SimpleNamespace(TCPTransport=Transport, selectors=selectors))
    intent = SimpleNamespace(stage=1)
    assert Transport()._next_XMIT_1(intent) == "later"
    assert intent.stage == Transport._XMITStepRetry


def test_a_connection_that_could_not_be_taken_ends_no_actor():
    """Thespian hands on what is no message then, at which its own shell fails."""
    assert Manager.handleMessages(object.__new__(Manager), Thespian__UpdateWork())
