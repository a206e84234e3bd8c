"""The actor that the keeper, the sub-units and the ack servers of a host report to: the driver, or the host agent for it."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from esault.messages.control import Exited, Kill
from esault.runtime.actors.actor import HandlerFailed, ReportingActor, UnknownMessage
from esault.runtime.actors.guard import signer
from esault.runtime.messages import ForkedChild, KeeperStarted, Messages
from esault.runtime.net.status_pipe import ReportOrder, StatusReader
from esault.runtime.process.owner import Owner
from esault.runtime.process.waker import Waker

__all__ = ["Supervisor"]

#: seconds between two looks whether the pipe's file is there
_MEND_EVERY = 1.0


class Supervisor(ReportingActor):
    """Knows the processes of one host by incarnation. A subclass says in `engine_failed` what a mistake of the engine does."""

    def __init__(self) -> None:
        super().__init__()
        self.keeper: Any = None
        self.addresses: dict[int, Any] = {}
        #: is readable when a thread of this process has something for this actor
        self.waker = Waker()
        self._keeper_process: Owner | None = None
        self._statuses: StatusReader | None = None
        self._mend_at = 0.0
        self._order = ReportOrder()
        self._waiting: dict[int, list[Any]] = defaultdict(list)

    def deliver(self, incarnation: int, messages: Sequence[Any]) -> None:
        """Send to a sub-unit, as soon as its process is there."""
        address = self.addresses.get(incarnation)
        if address is None:
            self._waiting[incarnation].extend(messages)
        else:
            self.send(address, Messages(tuple(messages)))

    def take_reports(self, run_dir: str) -> None:
        """Make the pipe that sub-units report through; where that cannot be, they send messages."""
        with contextlib.suppress(OSError):
            self._statuses = StatusReader(run_dir, signer().loads)

    def reports(self) -> list[Any]:
        """Return the statuses that came since."""
        return [] if self._statuses is None else self._order.due(self._statuses.read())

    def mend_reports(self, now: float) -> None:
        """Make the pipe's file again, looked for once a second, if another program has removed it."""
        if self._statuses is not None and now >= self._mend_at:
            self._mend_at = now + _MEND_EVERY
            self._statuses.mend()

    def in_order(self, message: Messages) -> Iterator[Any]:
        """Yield the messages of a sub-unit, and reports where they stand among them."""
        yield from self.reports()
        before = message.count - len(message.messages)
        for number, each in enumerate(message.messages, 1):
            yield each
            if message.process:
                yield from self._order.counted(message.process, before + number)

    def undelivered(self, address: Any, number: int) -> None:
        """End the process that misses messages: what they were to bring about would be waited for ever. Its death is dealt with."""
        super().undelivered(address, number)
        missed = next((incarnation for incarnation, known in self.addresses.items() if known == address), None)
        if missed is not None:
            self.send(self.keeper, Kill(missed))

    def keeper_died(self) -> bool:
        """Return True, once, when the keeper's process is gone."""
        if self._keeper_process is None or self._keeper_process.alive():
            return False
        self._keeper_process = None
        return True

    def engine_failed(self, text: str) -> None:
        """End the run: an actor has met a mistake in the engine."""
        raise NotImplementedError

    def exited(self, message: Exited) -> None:
        """A process is gone."""
        self.addresses.pop(message.incarnation, None)
        self._order.forget(message.process)

    def receiveMsg_KeeperStarted(self, message: KeeperStarted, sender: Any) -> None:
        """The keeper is there."""
        self._keeper_process = message.process

    def receiveMsg_ForkedChild(self, message: ForkedChild, sender: Any) -> None:
        """A process is there; what waited for it goes."""
        self.addresses[message.incarnation] = message.address
        waiting = self._waiting.pop(message.incarnation, None)
        if waiting:
            self.deliver(message.incarnation, waiting)

    def receiveMsg_UnknownMessage(self, message: UnknownMessage, sender: Any) -> None:
        """An actor of this run reports a mistake in the engine."""
        self.engine_failed(f"the engine itself failed: {message}")

    def receiveMsg_HandlerFailed(self, message: HandlerFailed, sender: Any) -> None:
        """An actor of this run reports a mistake in the engine."""
        self.engine_failed(f"the engine itself failed in {message.actor} at {message.type}:\n{message.traceback}")

    def _report(self, report: UnknownMessage | HandlerFailed) -> None:
        if isinstance(report, HandlerFailed):
            self.receiveMsg_HandlerFailed(report, None)
        else:
            self.receiveMsg_UnknownMessage(report, None)
