"""An event loop of asyncio that is stepped: the owner of the thread runs what is ready, and goes on with other things.

The data loop of a sub-unit waits for frames, control messages and time, all at once. An event loop that waited for itself would keep all
that waiting; one in a thread of its own would cost two switches of threads a call. So the sub-unit steps this one in each turn, and
the descriptor of what it waits for stands in the data loop's own poll.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import selectors
from collections.abc import Callable, Coroutine
from typing import Any

__all__ = ["SteppedLoop"]

#: rounds of the event loop in one step: what is always ready, such as a loop over `sleep(0)`, must leave room for others
MOST_ROUNDS = 64
#: rounds in which what was cancelled may end
LAST_ROUNDS = 16
#: name of the engine's own tasks
CALL = "esault-call"
#: tasks that have ended are looked for among so many, and as many again as were open then
KEPT = 64
#: seconds that a timer may be found early by, since times are sums of floats
EARLY = 1e-6


class _Selector(selectors.EpollSelector):
    """Never waits, and ends the step where the loop would."""

    def __init__(self) -> None:
        super().__init__()
        self.stop: Callable[[], None] = lambda: None
        #: whether the step may go on after this round
        self.may_go_on: Callable[[], bool] = lambda: False
        #: seconds that the loop would have waited; None: for ever
        self.wait: float | None = None
        #: there may be more that is ready
        self.more = False

    def select(self, timeout: float | None = None) -> Any:
        """Return the events up to now; `timeout` says whether anything else is ready."""
        events = super().select(0)
        self.wait = timeout
        self.more = bool(events) or timeout == 0
        if not self.more or not self.may_go_on():
            self.stop()
        return events


class _Loop(asyncio.SelectorEventLoop):
    """Its time is the engine's, which in a test stands still until it is told."""

    def __init__(self, selector: _Selector, clock: Callable[[], float]) -> None:
        self._engine_clock = clock
        # Small numbers: at 1.7e9 a float is no finer than a quarter of a microsecond.
        self._begun = clock()
        super().__init__(selector)

    def time(self) -> float:
        return self._engine_clock() - self._begun

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """A run that is given up in the middle, as tests do, leaves no word about the calls that were open."""
        task = context.get("task")
        if task is None or task.get_name() != CALL:
            super().call_exception_handler(context)

    def __del__(self) -> None:
        """As above: no word about the loop either."""


class SteppedLoop:
    """Runs coroutines, a step at a time, in the caller's thread."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock`: seconds, never going back; the loop's timers go by it."""
        self._clock = clock
        self._selector = _Selector()
        self._loop = _Loop(self._selector, clock)
        self._selector.stop = self._loop.stop
        self._selector.may_go_on = self._may_go_on
        self._rounds = 0
        self._until = 0.0
        self._wake_at = float("inf")
        #: the loop knows tasks by weak references only
        self._tasks: list[asyncio.Task[None]] = []
        self._look_at = KEPT
        #: of the caller of the step that runs
        self._context: contextvars.Context | None = None

    def start(self, call: Coroutine[Any, Any, None]) -> None:
        """Run this as a task, from the next step on, or in the step that runs. What it raises is lost: it must see to that itself."""
        if self._context is None:
            task = self._loop.create_task(call, name=CALL)
        else:  # not with what the task that calls this has set
            task = self._context.run(self._loop.create_task, call, name=CALL)
        # A callback of each that ends would take a round of the loop.
        if len(self._tasks) >= self._look_at:
            self._tasks = [task for task in self._tasks if not task.done()]
            self._look_at = KEPT + 2 * len(self._tasks)
        self._tasks.append(task)
        self._wake_at = 0.0

    def step(self, seconds: float) -> bool:
        """Run what is ready, for so many seconds at most; whether there may be more at once."""
        if self._loop.is_closed():
            return False
        self._until = self._clock() + seconds
        self._run(MOST_ROUNDS)
        wait = self._selector.wait
        more = self._selector.more
        self._wake_at = 0.0 if more else float("inf") if wait is None else self._clock() + wait + EARLY
        return more

    def sleep(self, seconds: float) -> Coroutine[Any, Any, None]:
        """Let others run for so long, in a task."""
        return asyncio.sleep(seconds)

    def future(self) -> asyncio.Future[Any]:
        """Return what tasks can await until `set_result` is called."""
        return self._loop.create_future()

    @property
    def wake_at(self) -> float:
        """Return the time at which a timer is due, by the clock; infinite where there is none."""
        return self._wake_at

    def fileno(self) -> int:
        """Can be read when something came that a task waits for, also from another thread."""
        return self._selector.fileno()

    def _may_go_on(self) -> bool:
        self._rounds -= 1
        return self._rounds > 0 and self._clock() < self._until

    def _run(self, rounds: int) -> None:
        self._rounds = rounds
        outer = asyncio._get_running_loop()
        # In a notebook all code runs within a loop, which knows nothing of this one.
        if outer is not None:
            asyncio._set_running_loop(None)
        self._context = contextvars.copy_context()
        try:
            self._loop.run_forever()
        finally:
            self._context = None
            if outer is not None:
                asyncio._set_running_loop(outer)

    def close(self) -> None:
        """Cancel what is open, and let it end if that takes no waiting."""
        if self._loop.is_closed():
            return
        self._wake_at = float("inf")
        self._loop.set_exception_handler(lambda loop, context: None)  # it is not asked for any more
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._until = float("inf")
        with contextlib.suppress(RuntimeError):  # by the collector of garbage, in the middle of another loop's round
            self._run(LAST_ROUNDS)
        self._loop.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()
