"""Calls the hooks of sinks that the driver's process owes them."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any

from esault.background import BackgroundLoop

__all__ = ["PATIENCE", "Committer"]

#: seconds that a commit may take on when the run ends at once
PATIENCE = 2.0


class Committer:
    """One call at a time. Where sinks commit for the whole run all calls are in a thread of their own, since the driver must not wait for these."""

    def __init__(self, threaded: bool, wake: Callable[[], None]) -> None:
        """`wake` is called in the thread when what was begun is over."""
        self.background = BackgroundLoop()
        self._wake = wake
        self._calls: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]] | None = None
        self._open: Future[Any] | None = None
        if threaded:
            self._calls = queue.SimpleQueue()
            threading.Thread(target=_work, args=(self._calls,), name="esault-commits", daemon=True).start()

    def call(self, call: Callable[[], Any]) -> Any:
        """Return what a call returns; raises what it raises."""
        return call() if self._calls is None else self._put(call).result()

    def call_within(self, call: Callable[[], Any], seconds: float) -> bool:
        """Do a call that may never return, and return whether it did so in time; raises what it raises."""
        calls = self._calls
        if calls is None:
            calls = queue.SimpleQueue()
            threading.Thread(target=_work, args=(calls,), name="esault-last-commit", daemon=True).start()
        future: Future[Any] = Future()
        calls.put((call, future))
        wait((future,), seconds)
        if future.done():
            future.result()
        return future.done()

    def begin(self, call: Callable[[], Any]) -> None:
        """Begin a call, and let the driver go on; `over` tells when it is."""
        assert self._open is None
        self._open = self._put(call)
        self._open.add_done_callback(lambda future: self._wake())

    def _put(self, call: Callable[[], Any]) -> Future[Any]:
        assert self._calls is not None
        future: Future[Any] = Future()
        self._calls.put((call, future))
        return future

    @property
    def busy(self) -> bool:
        """Return whether something was begun and not taken by `over`."""
        return self._open is not None

    def over(self) -> Future[Any] | None:
        """Return what was begun once it is over, and forget it."""
        future = self._open
        if future is None or not future.done():
            return None
        self._open = None
        return future

    def settle(self) -> bool:
        """Wait a moment for what is on when the run ends; return whether other calls can be made."""
        if self._open is not None:
            wait((self._open,), PATIENCE)
        return self._open is None or self._open.done()


def _work(calls: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]]) -> None:
    while True:
        call, future = calls.get()
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)
