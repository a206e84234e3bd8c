"""The host process's end of the connection to its driver: a thread in the host agent's process.

It listens on a port of its own and lets in one driver, once; one that comes later belongs to another life of the run. What the driver
says goes into `inbox`, and `on_word` is called in this thread. Each word of the driver renews the lease of all processes here. When
none comes for `SILENCE` seconds, or the connection is gone, `over` says why, and this host process is at its end: the driver has given the
ranges of its sub-units to others by then, or will.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from esault.cluster.connection import Connection, Lost, Strangers, crowding, listen
from esault.cluster.key import ClusterKey
from esault.cluster.messages import Attach, Attached, Detach, Heartbeat
from esault.cluster.tls import Refused
from esault.runtime.process.lease import LeaseHolder
from esault.runtime.process.waker import Waker

__all__ = ["BEAT_EVERY", "SILENCE", "DriverConnection"]

#: seconds between two beats
BEAT_EVERY: Final = 0.3
#: seconds without a word from the driver after which all processes here end; the driver waits half a second less
SILENCE: Final = 3.0
#: seconds that the driver has to come in
_ENTER_WITHIN: Final = 20.0
#: connections at a time that have not said whose they are
_MOST_STRANGERS: Final = 64


class DriverConnection(threading.Thread):
    """See the module. `say` may be called by any thread."""

    def __init__(self, run: str, address: str, key: str, lease: LeaseHolder, on_word: Callable[[], None]) -> None:
        """Listens at once. Raises OSError, UsageError."""
        super().__init__(name="esault-driver-line", daemon=True)
        self._run_id = run
        self._context = ClusterKey(key).server
        self._listener = listen(address, 0)
        self.port = int(self._listener.getsockname()[1])
        self._lease = lease
        self._on_word = on_word
        self.inbox: deque[Any] = deque()
        self._outbox: deque[Any] = deque()
        #: why it has ended; None while it lasts
        self.over: str | None = None
        self._strangers = Strangers(f"run {run}")
        self._driver: Connection | None = None
        self._waker = Waker()

    def say(self, message: Any) -> None:
        """To the driver, in order."""
        self._outbox.append(message)
        self._waker.wake()

    @property
    def waiting(self) -> int:
        """Words that wait to be sent, or kilobytes of them."""
        return len(self._outbox) + (self._driver.backlog >> 10 if self._driver is not None else 0)

    def run(self) -> None:
        """The thread."""
        try:
            self._driver = self._let_in()
            self._driver.send(Attached())
            self._serve(self._driver)
        except (Lost, Refused) as error:
            self.over = f"the driver is gone: {error}"
        except Exception as error:
            self.over = f"the line to the driver failed: {type(error).__name__}: {error}"
        finally:
            if self._driver is not None:
                self._driver.close()
            self._on_word()

    def _let_in(self) -> Connection:
        """The driver's connection, the first that says it is this run's."""
        until = time.monotonic() + _ENTER_WITHIN
        callers: list[Connection] = []
        try:
            while time.monotonic() < until:
                self._lease.renew()  # there is no driver to be cut off from yet
                self._accept(callers)
                for caller in list(callers):
                    try:
                        for message in caller.receive():
                            if message == Attach(self._run_id):
                                callers.remove(caller)
                                return caller
                            raise Refused("it is not the driver of this run")
                    except Refused as error:
                        self._strangers.note(caller.peer, str(error))
                        callers.remove(caller)
                        caller.close()
                    except Lost:
                        callers.remove(caller)
                        caller.close()
                time.sleep(0.01)
            raise Lost(f"it did not come within {_ENTER_WITHIN:g} s")
        finally:
            self._listener.close()
            for caller in callers:
                caller.close()

    def _accept(self, callers: list[Connection]) -> None:
        with contextlib.suppress(BlockingIOError, ConnectionError):
            made, _ = self._listener.accept()
            if len(callers) >= _MOST_STRANGERS:
                crowding_one = callers.pop(crowding([caller.peer for caller in callers]))
                self._strangers.note(crowding_one.peer, "too many connections that say nothing")
                crowding_one.close()
            try:
                callers.append(Connection(made, self._context, server=True))
            except (OSError, Lost):
                made.close()

    def _serve(self, driver: Connection) -> None:
        heard = beat_at = time.monotonic()
        while True:
            now = time.monotonic()
            if now >= beat_at:
                beat_at = now + BEAT_EVERY
                driver.send(Heartbeat())
            while self._outbox:
                driver.send(self._outbox.popleft())
            ready = driver.wait(max(0.0, beat_at - time.monotonic()), self._waker.fileno())
            if self._waker.fileno() in ready:
                self._waker.clear()
            if driver.fileno() in ready:
                words = [word for word in driver.receive() if not isinstance(word, Heartbeat)]
                heard = time.monotonic()
                if self._lease.age() > SILENCE:
                    # this host was frozen: what has just been read was said long ago
                    raise Lost(f"nothing was heard of it for {self._lease.age():.1f} s")
                self._lease.renew()
                if words:
                    self.inbox.extend(words)
                    self._on_word()
            elif time.monotonic() - heard > SILENCE or self._lease.age() > SILENCE:
                raise Lost(f"no word from it for {SILENCE:g} s")
            if self._outbox and isinstance(self._outbox[-1], Detach):
                while self._outbox:
                    driver.send(self._outbox.popleft())
                driver.close(1.0)
                raise Lost("the run has ended")
