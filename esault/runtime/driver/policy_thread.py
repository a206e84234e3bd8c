"""Calls policies with a limit of time: one that does not return must not hold up the driver."""

from __future__ import annotations

import ctypes
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any

from esault.errors import PolicyTimeout

__all__ = ["LIMIT", "PolicyThread"]

#: seconds that a policy has
LIMIT = 1.0


class _Abandoned(BaseException):
    """Raised in a thread whose answer is waited for no more."""


class PolicyThread:
    """Runs one call at a time in a thread of its own. One that takes too long is left behind and, where it is Python code, ended."""

    def __init__(self, limit: float = LIMIT) -> None:
        self._limit = limit
        self._calls: queue.SimpleQueue[Any] | None = None
        self._answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def ask(self, call: Callable[[], Sequence[Any]]) -> Sequence[Any]:
        """Return what the call returns, or raise what it raises. Raises PolicyTimeout when it takes longer than the limit."""
        if self._calls is None:
            self._calls, self._answers = queue.SimpleQueue(), queue.SimpleQueue()
            self._thread = threading.Thread(
                target=_work, args=(self._calls, self._answers), name="esault-policies", daemon=True
            )
            self._thread.start()
        self._calls.put(call)
        try:
            result, error = self._answers.get(timeout=self._limit)
        except queue.Empty:
            self.close()
            raise PolicyTimeout(f"it took longer than {self._limit:g} s") from None
        if error is not None:
            raise error
        answer: Sequence[Any] = result
        return answer

    def close(self) -> None:
        """End the thread: in order if it waits, by an exception if it is in a call."""
        if self._calls is None or self._thread is None:
            return
        self._calls.put(None)
        ident = self._thread.ident
        if ident is not None and self._thread.is_alive():
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), ctypes.py_object(_Abandoned))
        self._calls = self._thread = None


def _work(calls: queue.SimpleQueue[Any], answers: queue.SimpleQueue[Any]) -> None:
    try:
        while True:
            call = calls.get()
            if call is None:
                return
            try:
                answers.put((list(call()), None))
            except Exception as error:
                answers.put((None, error))
    except _Abandoned:
        return
