"""Messages that a server must confirm: in order, again where a connection broke, and not more at a time than it takes."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from esault.connectors.rabbitmq.link import Link
from esault.errors import EsaultError, SinkError

__all__ = ["MARKER_OPTIONS", "Message", "Publisher"]

#: exchange, routing key, body, properties by name
Message = tuple[str, str, bytes, "dict[str, Any]"]

#: messages that wait for their confirmation at most
_WINDOW = 2_000
#: messages that are published before the connection looks for answers
_AT_ONCE = 200
#: messages that wait to be published before no more rows are taken
_FULL = 5_000
#: seconds after which a message that the server did not take is given to it again
_AGAIN = 0.5
#: seconds behind a new connection in which a queue may not be there yet: the server answers before its streams have leaders
_RECOVERS_WITHIN = 30.0
#: how a queue of markers is made: what it held longest goes first, and what was not used for 30 days goes as a whole
MARKER_OPTIONS = {"x-max-length": 1000, "x-expires": 30 * 86_400_000}
_RENEW_EVERY = 86_400.0


@dataclass
class _Job:
    """Messages that are confirmed together."""

    left: int
    done: Future[None] = field(default_factory=Future)

    @property
    def over(self) -> bool:
        return self.done.done()


@dataclass
class _Outgoing:
    job: _Job
    message: Message
    #: it is published when all before it are confirmed
    behind: bool = False
    #: no queue took it, and it is given to the server again
    returned: bool = False


class Publisher:
    """One connection with publisher confirms. `marker`: a queue that names what has been published. `drops`: what no queue takes is dropped."""

    def __init__(
        self,
        who: str,
        url: str,
        say: Callable[[str], None],
        marker: str | None = None,
        drops: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._who, self._say, self._marker, self._drops = who, say, marker, drops
        self._lock = threading.Lock()
        self._todo: deque[_Outgoing] = deque()
        self._rooms: list[Future[None]] = []
        self._error: EsaultError | None = None
        # of the connection's thread alone
        self._channel: Any = None
        self._open: dict[int, _Outgoing] = {}
        self._number = 0
        self._pausing = False
        self._said: set[str] = set()
        #: exchanges and routing keys whose queues have taken a message since a restart
        self._taken: set[tuple[str, str]] = set()
        self._clock, self._recovers_until = clock, 0.0
        self._link = Link(who, url, SinkError, say, ready=self._ready, lost=self._lost, failed=self._failed)
        self._link.start()

    def publish(self, messages: Iterable[Message], token: str | None = None) -> Future[None]:
        """Return what is done when the server has confirmed all, and the marker `token` behind them. Raises SinkError."""
        some = list(messages)
        job = _Job(len(some) + (token is not None and self._marker is not None))
        outgoing = [_Outgoing(job, message) for message in some]
        if token is not None and self._marker is not None:
            marked: Message = ("", self._marker, token.encode(), {"delivery_mode": 2})
            outgoing.append(_Outgoing(job, marked, behind=True))
        with self._lock:
            if self._error is not None:
                raise self._error
            self._todo.extend(outgoing)
        self._link.call(self._pump)
        return job.done

    def room(self) -> Future[None] | None:
        """Return what is done when more may be given; None: now."""
        with self._lock:
            if len(self._todo) < _FULL or self._error is not None:
                return None
            self._rooms.append(Future())
            return self._rooms[-1]

    def close(self) -> None:
        """Disconnect; what is not confirmed is given up."""
        self._link.close()

    # the thread of the connection -------------------------------------------------------------------

    def _ready(self, channel: Any) -> None:
        self._channel, self._number = channel, 0
        if self._recovers_until:  # not the first one
            self._recovers_until = self._clock() + _RECOVERS_WITHIN
        channel.add_on_return_callback(self._returned)
        channel.confirm_delivery(self._answered, callback=lambda _: self._pump())
        self._renew(channel)

    def _renew(self, channel: Any) -> None:
        if self._marker is not None and channel.is_open:
            channel.queue_declare(self._marker, durable=True, arguments=MARKER_OPTIONS)
            self._link.later(_RENEW_EVERY, lambda: self._renew(channel))

    def _lost(self) -> None:
        """Publish again what was not confirmed: the server may have it."""
        self._channel, self._recovers_until = None, float("inf")
        self._taken.clear()
        back, self._open = list(self._open.values()), {}
        for outgoing in back:
            outgoing.returned = False
        with self._lock:
            self._todo.extendleft(reversed(back))

    def _failed(self, error: EsaultError) -> None:
        with self._lock:
            self._error = error
            jobs = {id(each.job): each.job for each in (*self._open.values(), *self._todo)}
            rooms, self._rooms = self._rooms, []
        for job in jobs.values():
            self._fail(job, error)
        for room in rooms:
            room.set_result(None)

    def _fail(self, job: _Job, error: EsaultError) -> None:
        with suppress(InvalidStateError):
            job.done.set_exception(error)

    def _pump(self) -> None:
        import pika

        for _ in range(_AT_ONCE):
            if self._channel is None or not self._channel.is_open or self._pausing or len(self._open) >= _WINDOW:
                return
            with self._lock:
                if not self._todo or (self._open and self._goes_alone(self._todo[0])):
                    break
                outgoing = self._todo.popleft()
            if outgoing.job.over:
                continue
            self._number += 1
            self._open[self._number] = outgoing
            exchange, routing_key, body, named = outgoing.message
            try:
                properties = pika.BasicProperties(**named)
                self._channel.basic_publish(
                    exchange, routing_key, body, properties, mandatory=not (self._drops or outgoing.behind)
                )
            except Exception as error:
                if _is_of_the_connection(error):
                    raise
                # Nothing of it was sent: else pika would take the connection for lost, and it would come again and again.
                del self._open[self._number]
                self._number -= 1
                said = f"a message with routing key {routing_key!r} cannot be sent: {type(error).__name__}: {error}"
                self._fail(outgoing.job, SinkError(f"{self._who}: {said}; correct properties or routing_key"))
        else:
            self._link.call(self._pump)
        with self._lock:
            rooms, self._rooms = (self._rooms, []) if len(self._todo) < _FULL else ([], self._rooms)
        for room in rooms:
            room.set_result(None)

    def _goes_alone(self, outgoing: _Outgoing) -> bool:
        """Return whether it waits for the confirmation of all before it.

        Behind a restart so do those to a queue until it has taken one: of many at once it could take the last ones alone.
        """
        unproven = self._recovering and not self._drops and outgoing.message[:2] not in self._taken
        return outgoing.behind or unproven

    @property
    def _recovering(self) -> bool:
        return self._clock() < self._recovers_until

    def _answered(self, frame: Any) -> None:
        method = frame.method
        numbers = [n for n in self._open if n <= method.delivery_tag] if method.multiple else [method.delivery_tag]
        answered = [self._open.pop(n) for n in numbers if n in self._open]
        if method.NAME.endswith("Nack"):
            self._again(answered, "the server refuses messages (a queue that is full, with overflow=reject-publish?)")
            return
        returned = [outgoing for outgoing in answered if outgoing.returned]
        for outgoing in answered:
            if outgoing.returned:
                outgoing.returned = False
                continue
            if self._recovering:
                self._taken.add(outgoing.message[:2])
            job = outgoing.job
            job.left -= 1
            if not job.left and not job.over:
                job.done.set_result(None)
        if returned:
            self._again(returned, "no queue takes messages yet behind the restart")
        self._pump()

    def _again(self, messages: list[_Outgoing], why: str) -> None:
        """Give messages to the server once more, in a moment."""
        with self._lock:
            self._todo.extendleft(reversed(messages))
        if why not in self._said:
            self._said.add(why)
            self._say(f"{why}: they are given to it again")
        self._pausing = True
        self._link.later(_AGAIN, self._resume)

    def _resume(self) -> None:
        self._pausing = False
        self._pump()

    def _returned(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        where = f"queue {method.routing_key!r}" if not method.exchange else f"exchange {method.exchange!r}"
        error = SinkError(
            f"{self._who}: {where} takes no message with routing key {method.routing_key!r} ({method.reply_text}): make the queue, or "
            'bind one, or say on_unroutable="drop"'
        )
        theirs = (method.exchange, method.routing_key, body)
        found = [each for each in self._open.values() if each.message[:3] == theirs and not each.returned]
        if self._recovering:
            for outgoing in found[:1]:  # its confirmation comes behind this
                outgoing.returned = True
            return
        for outgoing in found:
            self._fail(outgoing.job, error)


def _is_of_the_connection(error: Exception) -> bool:
    """Return whether it is no fault of the message."""
    from pika import exceptions as of

    return isinstance(error, OSError) or (
        isinstance(error, of.AMQPError) and not isinstance(error, (of.ProtocolSyntaxError, of.ShortStringTooLong))
    )
