"""Work beside the data loop, which does not wait for it: a thread with an event loop for coroutines of sinks, and threads for what blocks."""

from __future__ import annotations

import _thread
import os
import threading
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Future

__all__ = ["BackgroundLoop", "in_background"]

T = TypeVar("T")


class _Worker:
    """A thread that does one work after another, and waits in between."""

    def __init__(self) -> None:
        self._given: list[Callable[[], None]] = []
        self._waits = _thread.allocate_lock()
        self._waits.acquire()

    def give(self, work: Callable[[], None]) -> None:
        """Have it done; nothing else may be under way."""
        self._given.append(work)
        self._waits.release()

    def run(self) -> None:
        """The thread; it ends where others wait already."""
        while True:
            self._waits.acquire()
            self._given.pop()()  # nothing here refers to it afterwards
            if len(_idle) >= _MOST_IDLE:
                return
            _idle.append(self)


#: threads that wait for work
_idle: list[_Worker] = []
#: one at a time is what most processes need: the parts of a table. Each keeps what its allocators hold for it
_MOST_IDLE = 1


def _forked() -> None:
    """Forget the threads: a process that is forked has none of them."""
    _idle.clear()


os.register_at_fork(after_in_child=_forked)


def in_background(work: Callable[[], T]) -> Future[T]:
    """Return a future of `work()`, done in a thread that does nothing else meanwhile and keeps no process alive.

    The thread is one that has done such work before, if one waits: Arrow and the C library keep memory by thread, and a new thread's is
    new to the system, which clears it.
    """
    from concurrent.futures import Future

    future: Future[T] = Future()

    def run() -> None:
        if not future.set_running_or_notify_cancel():  # from here on it cannot be cancelled, and takes a result
            return
        try:
            found = work()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(found)

    try:
        worker = _idle.pop()
    except IndexError:
        worker = _Worker()
        # `threading` would wait until the thread runs, which on busy cores takes longer than a batch.
        _thread.start_new_thread(worker.run, ())
    worker.give(run)
    return future


class BackgroundLoop:
    """Runs coroutines in one thread, which begins with the first of them: few processes need it, and asyncio takes time to load."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def submit(self, awaitable: Awaitable[Any]) -> Future[Any]:
        """Begin with it, and return what will be done with it."""
        import asyncio

        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=_run, args=(self._loop,), name="esault-background", daemon=True)
            self._thread.start()
        return asyncio.run_coroutine_threadsafe(_awaited(awaitable), self._loop)

    def close(self) -> None:
        """Cancel what is open, and end the thread."""
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop = self._thread = None


async def _awaited(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


def _run(loop: asyncio.AbstractEventLoop) -> None:
    import asyncio

    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        open_tasks = asyncio.all_tasks(loop)
        for task in open_tasks:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*open_tasks, return_exceptions=True))
        loop.close()
