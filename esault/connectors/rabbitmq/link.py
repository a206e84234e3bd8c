"""A connection to RabbitMQ in a thread of its own: heartbeats go on whatever the data loop does, and what breaks is made anew."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from esault.connectors.rabbitmq.client import failure, library, parameters, passes, place
from esault.connectors.waits import Waits
from esault.errors import EsaultError

__all__ = ["Link"]


class Link:
    """One connection with one channel.

    `ready(channel)` is called when there is a new channel, `lost()` when it is gone, `failed(error)` where no waiting helps; all
    in the thread of the connection. `say` takes lines for the user: a server that is away is said once, and that it is back.
    """

    def __init__(
        self,
        who: str,
        url: str,
        kind: type[EsaultError],
        say: Callable[[str], None],
        *,
        ready: Callable[[Any], None],
        lost: Callable[[], None],
        failed: Callable[[EsaultError], None],
    ) -> None:
        self._pika = library(who, kind)
        from pika.adapters.select_connection import IOLoop, SelectConnection

        self._connect_by = SelectConnection
        self._who, self._kind, self._say = who, kind, say
        self._parameters = parameters(who, kind, url)
        self._ready, self._lost, self._failed = ready, lost, failed
        self._loop = IOLoop()
        self._connection: Any = None
        self._channel: Any = None
        self._away = False
        self._waits = Waits()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name=f"esault {who}", daemon=True)

    def start(self) -> None:
        """Connect. Its owner has it by then: what is called from the thread uses it."""
        self._thread.start()

    def call(self, function: Callable[[], None]) -> None:
        """Call it in the thread of the connection, soon. Any thread may ask."""
        self._loop.add_callback_threadsafe(function)

    def later(self, seconds: float, function: Callable[[], None]) -> None:
        """Call it in so many seconds; asked for in the thread of the connection."""
        self._loop.call_later(seconds, function)

    def close(self) -> None:
        """Close the connection, and wait for the end of its thread."""
        if self._thread.is_alive():
            self.call(self._close)
            self._thread.join(5.0)

    def _run(self) -> None:
        try:
            self._connect()
            self._loop.start()
        except Exception as error:  # a fault of ours or of pika's: the data loop must hear of it
            if self._closing:
                return  # pika's, where a connection that is being opened is closed: it closes the socket first
            self._failed(self._kind(f"{self._who}: {type(error).__name__}: {error}"))
        finally:
            self._loop.close()

    def _connect(self) -> None:
        if not self._closing:
            self._connection = self._connect_by(
                self._parameters,
                on_open_callback=lambda connection: connection.channel(on_open_callback=self._opened),
                on_open_error_callback=self._broken,
                on_close_callback=self._broken,
                custom_ioloop=self._loop,
            )
            self._connection.add_on_connection_blocked_callback(
                lambda *_: self._say(f"{self._where} takes no messages (its memory or disk is short): waiting")
            )
            self._connection.add_on_connection_unblocked_callback(
                lambda *_: self._say(f"{self._where} takes messages again")
            )

    @property
    def _where(self) -> str:
        return f"RabbitMQ at {place(self._parameters)}"

    def _opened(self, channel: Any) -> None:
        self._channel = channel
        channel.add_on_close_callback(self._channel_closed)
        self._waits.begin_again()
        if self._away:
            self._away = False
            self._say(f"{self._where} answers again")
        self._ready(channel)

    def _channel_closed(self, channel: Any, reason: Any) -> None:
        if channel is self._channel and isinstance(reason, self._pika.exceptions.ChannelClosedByBroker):
            self._channel = None
            self._lost()
            if passes(reason):
                self._wait(reason)
                connection = self._connection
                self.later(self._waits.next(), lambda: self._open_again(connection))
            else:
                self._failed(failure(self._kind, self._who, self._parameters, reason))

    def _open_again(self, connection: Any) -> None:
        # One that is lost meanwhile is made anew, with a channel of its own.
        if connection is self._connection and connection.is_open:
            connection.channel(on_open_callback=self._opened)

    def _broken(self, connection: Any, error: Any) -> None:
        if connection is not self._connection:
            return
        if self._channel is not None:
            self._channel = None
            self._lost()
        if self._closing:
            self._loop.stop()
        elif passes(error):
            self._wait(error)
            self.later(self._waits.next(), self._connect)
        else:
            self._failed(failure(self._kind, self._who, self._parameters, error))

    def _wait(self, error: Any) -> None:
        if not self._away:
            self._away = True
            self._say(f"{self._where} does not answer ({error}): waiting until it does")

    def _close(self) -> None:
        self._closing = True
        connection = self._connection
        if connection is not None and not connection.is_closing and not connection.is_closed:
            connection.close()  # also one that is being opened: its socket would stay
        else:
            self._loop.stop()
