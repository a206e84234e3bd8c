"""A process that may open no more files goes on talking: Thespian's own ends, or drops the message, at the first `EMFILE`.

Each process of the actor system holds a few descriptors in reserve. When none is to be had, one of them is closed and its
place taken; the reserve is filled again as soon as that is possible. What waits for events needs no descriptor then.
"""

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from esault.runtime.actors import guard

__all__ = ["RESERVE", "Reserve", "install", "selector"]

#: descriptors in reserve of each process: connections that it may open when there are no others
RESERVE = 8
#: seconds between two looks whether the reserve can be filled, and those for which a new connection is waited for
_FILL_EVERY, _WAIT, _WAIT_EVERY = 1.0, 5.0, 0.02
_NONE_LEFT = frozenset((errno.EMFILE, errno.ENFILE))


class Reserve:
    """Descriptors that are held to be given up."""

    def __init__(self, size: int = RESERVE, clock: Callable[[], float] = time.monotonic) -> None:
        self._size, self._clock = size, clock
        self._held: list[int] = []
        self._filled = float("-inf")

    def fill(self) -> None:
        """Hold as many as can be had, if that was not tried just now."""
        if len(self._held) < self._size and self._clock() - self._filled >= _FILL_EVERY:
            self._filled = self._clock()
            with contextlib.suppress(OSError):
                while len(self._held) < self._size:
                    self._held.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))

    def give_up(self) -> bool:
        """Close one; False: none is left."""
        if not self._held:
            return False
        os.close(self._held.pop())
        self._filled = self._clock()  # not at once again: the place is for another
        return True

    def opened(self, operation: Callable[..., Any], *args: Any) -> Any:
        """The result of an operation that opens a descriptor; one of these makes room for it where there is none.

        Raises the operation's `OSError`.
        """
        self.fill()
        while True:
            try:
                return operation(*args)
            except OSError as error:
                if error.errno not in _NONE_LEFT or not self.give_up():
                    raise


#: of this process; a forked one inherits it with its descriptors, which are its own from then on
_reserve = Reserve()


def selector() -> selectors.BaseSelector:
    """A selector; one that needs no descriptor, where there is none."""
    try:
        return selectors.DefaultSelector()
    except OSError as error:
        if error.errno not in _NONE_LEFT:
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
                return _reserve.opened(original, self, operation, *args)
            except OSError as error:
                if error.errno not in _NONE_LEFT:
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
            if error.errno not in _NONE_LEFT:
                raise

    transport.new_socket, transport.interrupt_wait = new_socket, interrupt_wait
    tcp.selectors = SimpleNamespace(
        DefaultSelector=selector, EVENT_READ=selectors.EVENT_READ, EVENT_WRITE=selectors.EVENT_WRITE
    )
    transport.esault_descriptors = True
