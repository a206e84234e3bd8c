"""The base of all actors: nothing is dropped silently, no send waits for a frozen process.

A subclass writes `receiveMsg_<Type>(self, message, sender)` for each type that it knows, as with Thespian's
`ActorTypeDispatcher`. What comes on top:

- a message without a handler, or one that cannot be read, is reported as an `UnknownMessage`, an exception in a handler
  as a `HandlerFailed` (Thespian would drop the first and call the handler a second time for the second);
- `send` keeps order per address, whatever the others do (see `outbox`);
- `tick` is called some seconds after `tick_after`;
- `watch` calls a handler when a file descriptor can be read: the way for a thread to wake its actor.
"""

# ruff: noqa: N803 (names that Thespian calls)
from __future__ import annotations

import logging
import pickle
import threading
import traceback
from collections.abc import Callable, Hashable
from datetime import timedelta
from typing import Any

from thespian.actors import (
    ActorAddress,
    ActorExitRequest,
    ActorTypeDispatcher,
    ChildActorExited,
    InvalidActorAddress,
    PoisonMessage,
    ThespianWatch,
    WakeupMessage,
    WatchMessage,
)
from thespian.system.addressManager import ActorLocalAddress, CannotPickleAddress
from thespian.system.transport import TransmitIntent

from esault.runtime.actors.outbox import Bundle, Outboxes
from esault.value_class import value_class

__all__ = ["HandlerFailed", "ReportingActor", "UnknownMessage", "unpack"]

_TEXT = 500


@value_class(frozen=True)
class UnknownMessage:
    """An actor got a message that it has no handler for, or could not read: a mistake in the engine."""

    #: the class of the actor
    actor: str
    #: the type of the message
    type: str
    #: the message, shortened
    text: str


@value_class(frozen=True)
class HandlerFailed:
    """An actor's handler raised: a mistake in the engine."""

    actor: str
    #: the type of the message that it handled
    type: str
    #: the exception, in one line
    text: str
    traceback: str


class ReportingActor(ActorTypeDispatcher):  # type: ignore[misc]
    """See the module. `self.reporter` is the address that reports go to; until it is set they are logged as errors.

    What an actor sends goes in bundles, so it is for other `ReportingActor`s and for the command (`system.listen`).
    """

    reporter: ActorAddress | None = None

    def __init__(self) -> None:
        super().__init__()
        self._watched: dict[int, Callable[[], object]] = {}
        self._outboxes = Outboxes(self._transmit, self.undelivered)
        self._thread = threading.get_ident()

    # -- sending ------------------------------------------------------------------------------

    def send(self, targetAddr: ActorAddress, msg: object) -> None:
        """Send a message; it is as it was at this moment, whatever is done to it afterwards.

        Raises what pickle raises for a message that cannot travel, and `RuntimeError` in any thread but the actor's:
        a thread hands its messages over through a queue and a descriptor that the actor watches.
        """
        if threading.get_ident() != self._thread:
            raise RuntimeError(f"{type(self).__name__}.send in another thread: put it into a queue, see watch()")
        if not isinstance(targetAddr, ActorAddress):
            raise InvalidActorAddress(targetAddr, "not an address to send messages to")
        self._outboxes.post(self._key(targetAddr), targetAddr, _pack(msg))

    def undelivered(self, address: ActorAddress, number: int) -> None:
        """That many messages could not be delivered; by default only a debug line: who died is known otherwise."""
        logging.getLogger(__name__).debug("%s: %d messages to %s not delivered", type(self).__name__, number, address)

    def _key(self, address: ActorAddress) -> Hashable:
        """One key per actor, although a child has two addresses: its parent's own for it, and the real one."""
        manager = self._myRef._addrManager
        real = manager.exportAddr(address)
        if real is None:
            return ("child", address.addressDetails.addressInstanceNum)
        key = real.addressDetails.sockname
        if isinstance(address.addressDetails, ActorLocalAddress):
            self._outboxes.rename(("child", address.addressDetails.addressInstanceNum), key)
        return key  # type: ignore[no-any-return]

    def _transmit(self, address: ActorAddress, items: tuple[Any, ...], done: Callable[[bool], None]) -> None:
        self._myRef._send_intent(
            TransmitIntent(
                address,
                Bundle(items),
                onSuccess=lambda result, intent: done(True),
                onError=lambda result, intent: done(False),
            )
        )

    # -- waiting ------------------------------------------------------------------------------

    def tick_after(self, seconds: float) -> None:
        """Call `tick` once, that many seconds from now."""
        self.wakeupAfter(timedelta(seconds=seconds))

    def tick(self) -> None:
        """Do what an actor does now and then; only called after `tick_after`."""
        raise NotImplementedError

    def receiveMsg_WakeupMessage(self, message: WakeupMessage, sender: ActorAddress) -> None:
        """Thespian tells that the time is up."""
        self.tick()

    # -- receiving ----------------------------------------------------------------------------

    def watch(self, fd: int, handler: Callable[[], object]) -> None:
        """Call `handler()` whenever this descriptor can be read, and again as long as it can: read it empty.

        Takes effect at the end of the message that is being handled. The wake-up takes 0.1 to 0.5 ms.
        """
        self._watched[fd] = handler

    def receiveMessage(self, message: object, sender: ActorAddress) -> ThespianWatch | None:
        """Thespian's entry: never raises."""
        if isinstance(message, Bundle):
            for item in message.items:
                self._receive_item(item, sender)
        elif isinstance(message, WatchMessage):
            for fd in message.ready:
                handler = self._watched.get(fd)
                if handler is not None:
                    self._guarded(handler, "WatchMessage")
        else:
            self._dispatch(message, sender)
        # a watch lasts until the next message only
        return ThespianWatch(list(self._watched)) if self._watched else None

    def _receive_item(self, item: object, sender: ActorAddress) -> None:
        try:
            message = _unpack(item)
        except Exception:
            self._report(UnknownMessage(type(self).__name__, "unreadable", traceback.format_exc()))
            return
        if isinstance(message, ActorExitRequest):
            super().send(self.myAddress, message)  # for Thespian, not for the dispatcher
        else:
            self._dispatch(message, sender)

    def _dispatch(self, message: object, sender: ActorAddress) -> None:
        self._guarded(lambda: ActorTypeDispatcher.receiveMessage(self, message, sender), type(message).__name__)

    def receiveUnrecognizedMessage(self, message: object, sender: ActorAddress) -> None:
        """Called by the dispatcher when there is no handler."""
        leaving = getattr(self._myRef, "_exiting", False)
        if isinstance(message, ActorExitRequest) or (leaving and isinstance(message, ChildActorExited)):
            return
        if isinstance(message, PoisonMessage) and isinstance(message.poisonMessage, Bundle):
            return  # `undelivered` has been told
        try:
            text = str(message)
        except Exception as error:
            text = f"(no text: {error!r})"
        self._report(UnknownMessage(type(self).__name__, type(message).__name__, text[:_TEXT]))

    def _guarded(self, call: Callable[[], object], name: str) -> None:
        try:
            call()
        except Exception as error:
            text = "".join(traceback.format_exception_only(type(error), error)).strip()
            self._report(HandlerFailed(type(self).__name__, name, text[:_TEXT], traceback.format_exc()))

    def _report(self, report: UnknownMessage | HandlerFailed) -> None:
        if self.reporter is not None:
            self.send(self.reporter, report)
        elif isinstance(report, HandlerFailed):
            logging.getLogger(__name__).error("%s failed at a %s:\n%s", report.actor, report.type, report.traceback)
        else:
            logging.getLogger(__name__).error(
                "%s got a message that it does not know, a %s: %s", report.actor, report.type, report.text
            )


def _pack(message: object) -> object:
    try:
        return pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    except CannotPickleAddress:
        # it holds the address of a child that is only being born: Thespian waits for that before it pickles
        return message


def _unpack(item: object) -> object:
    # the pickle came inside a frame whose signature guard.py has checked
    return pickle.loads(item) if isinstance(item, bytes) else item


def unpack(message: object) -> list[object]:
    """The messages in what came from an actor, for one who is not an actor himself."""
    return [_unpack(item) for item in message.items] if isinstance(message, Bundle) else [message]
