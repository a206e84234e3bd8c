"""A process that may open no more files goes on talking: Thespian's own ends, or drops the message, at the first `EMFILE`.

Each process of the actor system holds a few descriptors in reserve (`runtime/process/descriptors.py`). When none is to be
had, one of them is closed and its place taken. What waits for events needs no descriptor then.
"""

from __future__ import annotations

import selectors
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from esault.runtime.actors import guard
from esault.runtime.process.descriptors import NONE_LEFT, reserve

__all__ = ["install", "selector"]

#: seconds for which a new connection is waited for, and between two tries
_WAIT, _WAIT_EVERY = 5.0, 0.02


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
    original = getattr(transport, "new_socket", None)
    if original is None or not hasattr(tcp, "selectors") or not hasattr(transport, "interrupt_wait"):
        raise guard.moved("TCPTransport has no new_socket or interrupt_wait, or its module no selectors")
    guard.require_parameters(original, "self op args kw")

    def new_socket(self: Any, operation: Callable[..., Any], *args: Any) -> Any:
        # A message that has no socket is dropped without a word. It is better late.
        patience = 0.0 if getattr(operation, "__name__", "") == "accept" else _WAIT
        end = time.monotonic() + patience
        while True:
            try:
                return reserve.opened(original, self, operation, *args)
            except OSError as error:
                if error.errno not in NONE_LEFT:
                    raise
                time.sleep(_WAIT_EVERY)
                if time.monotonic() >= end:
                    raise

    interrupt = transport.interrupt_wait

    def interrupt_wait(self: Any, *args: Any, **options: Any) -> None:
        # Called by the handlers of signals, where an error would end whatever runs. What it has noted is looked at a second later.
        try:
            interrupt(self, *args, **options)
        except OSError as error:
            if error.errno not in NONE_LEFT:
                raise

    transport.new_socket, transport.interrupt_wait = new_socket, interrupt_wait
    tcp.selectors = SimpleNamespace(
        DefaultSelector=selector, EVENT_READ=selectors.EVENT_READ, EVENT_WRITE=selectors.EVENT_WRITE
    )
    transport.esault_descriptors = True
