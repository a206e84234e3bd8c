"""A thread that does one thing after another, so that the data loop need not wait for a broker."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

__all__ = ["Thread"]

T = TypeVar("T")


class Thread:
    """Runs what it is given, in order. The thread begins with the first of it, and keeps no process from ending."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._asked: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def submit(self, call: Callable[[], T]) -> Future[T]:
        """Return what will come of the call."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        future: Future[T] = Future()
        self._asked.put((future, call))
        return future

    def end(self) -> None:
        """End behind what was given so far; nothing waits for it."""
        self._asked.put(None)

    def _run(self) -> None:
        while asked := self._asked.get():
            future, call = asked
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call())
                except BaseException as error:
                    future.set_exception(error)
