"""A process that may open no more files goes on talking: Thespian's own ends, or drops the message, at the first `EMFILE`.

Each process of the actor system holds a few descriptors in reserve (`runtime/process/descriptors.py`). When none is to be
had, one of them is closed and its place taken. What waits for events needs no descriptor then. A message that finds none
is sent later, and so is what waits behind it.
"""

from __future__ import annotations

import selectors
from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

from thespian.system.timing import ExpirationTimer, currentTime

from esault.runtime.actors import guard
from esault.runtime.process.descriptors import NONE_LEFT, reserve

__all__ = ["install", "look_again", "selector"]

#: time after which a message looks whether the one before it is through
_LOOK_AGAIN = timedelta(milliseconds=100)


def selector() -> selectors.BaseSelector:
    """A selector; one that needs no descriptor, where there is none."""
    try:
        return selectors.DefaultSelector()
    except OSError as error:
        if error.errno not in NONE_LEFT:
            raise
        return selectors.PollSelector()


def install(tcp: Any) -> None:
    """Have Thespian's transport open its sockets and selectors so. `tcp`: its module.

    Raises `RuntimeError` when a name that it replaces has moved in this Thespian.
    """
    transport = tcp.TCPTransport
    if getattr(transport, "esault_descriptors", False):
        return
    names = ("new_socket", "interrupt_wait", "_next_XMIT_1", "_XMITStepRetry", "_nextTransmitStep")
    if not hasattr(tcp, "selectors") or not all(hasattr(transport, name) for name in names):
        raise guard.moved(f"TCPTransport has not all of {', '.join(names)}, or its module no selectors")
    guard.require_parameters(transport.new_socket, "self op args kw")
    guard.require_parameters(transport._next_XMIT_1, "self intent")

    def new_socket(self: Any, operation: Callable[..., Any], *args: Any) -> Any:
        # Thespian's own closes sockets that are idle just now, on which others may be about to send.
        return reserve.opened(operation, *args)

    connect = transport._next_XMIT_1

    def next_connect(self: Any, intent: Any) -> Any:
        # A message that has no socket is dropped without a word, and all that come behind it. It is better late.
        try:
            return connect(self, intent)
        except OSError as error:
            if error.errno not in NONE_LEFT:
                raise
            intent.stage = self._XMITStepRetry
            return self._nextTransmitStep(intent)

    interrupt = transport.interrupt_wait

    def interrupt_wait(self: Any, *args: Any, **options: Any) -> None:
        # Called by the handlers of signals, where an error would end whatever runs. What it has noted is looked at a second later.
        try:
            interrupt(self, *args, **options)
        except OSError as error:
            if error.errno not in NONE_LEFT:
                raise

    transport.new_socket, transport.interrupt_wait = new_socket, interrupt_wait
    transport._next_XMIT_1 = next_connect
    tcp.selectors = SimpleNamespace(
        DefaultSelector=selector, EVENT_READ=selectors.EVENT_READ, EVENT_WRITE=selectors.EVENT_WRITE
    )
    transport.esault_descriptors = True


def look_again(intents: Any) -> None:
    """Have a message that waits for another one to the same address look again soon. `intents`: Thespian's class of them.

    It waits for the socket of that one, for a minute where this was closed meanwhile. Raises `RuntimeError` as `install` does.
    """
    if getattr(intents, "esault_looks_again", False):
        return
    names = ("awaitingTXSlot", "timeToRetry", "delay")
    if not all(hasattr(intents, name) for name in names):
        raise guard.moved(f"TransmitIntent has not all of {', '.join(names)}")
    wait, due, delay = intents.awaitingTXSlot, intents.timeToRetry, intents.delay
    guard.require_parameters(wait, "self")
    guard.require_parameters(due, "self socketAvail")
    guard.require_parameters(delay, "self current_time")

    def waiting(self: Any) -> None:
        wait(self)
        self._retryTime = ExpirationTimer(_LOOK_AGAIN)

    def time_to_retry(self: Any, available: bool = False) -> Any:
        found = due(self, available)
        if found:
            vars(self).pop("_awaitingTXSlot", None)
        return found

    def delay_of(self: Any, now: Any = None) -> Any:
        longest = delay(self, now)
        if not getattr(self, "_awaitingTXSlot", False) or not hasattr(self, "_retryTime"):
            return longest
        return min(longest, max(timedelta(0), self._retryTime.view(now or currentTime()).remaining()))

    intents.awaitingTXSlot, intents.timeToRetry, intents.delay = waiting, time_to_retry, delay_of
    intents.esault_looks_again = True
