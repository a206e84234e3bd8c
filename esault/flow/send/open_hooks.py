"""The hooks of a sink that are not done yet: a sink that waits for the world must not have the data loop wait."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from esault.flow.send.sink_call import Background, call_sink, future_of, waited

__all__ = ["OpenHooks"]

#: rows that wait for a sink until the sub-unit stops handing it more
MOST_WAITING = 10_000
#: ... and seconds that they may take: a checkpoint waits for them
LONGEST_WAITING = 0.5


def _nothing(result: Any) -> None:
    pass


class OpenHooks:
    """Calls the hooks of one sink in order, each at once where it may be, else behind those that are not done.

    Nothing is called while a coroutine or a `write` is open; behind a Future of `prepare` or `commit` other hooks are.
    """

    def __init__(
        self,
        name: str,
        background: Background | None,
        wake: Callable[[], None],
        clock: Callable[[], float],
        opened: list[OpenHooks] | None = None,
        first: int = 0,
    ) -> None:
        """`wake` is called from any thread when one is done: then `advance` has something to do. `opened`: those where something is open.

        `first`: rows to give it before it is known how long they take; 0: any number.
        """
        self._opened: list[OpenHooks] = [] if opened is None else opened
        self._name = name
        self._background = background
        self._wake = wake
        self._waiting: deque[tuple[str, Callable[[], Any], Callable[[Any], object], int]] = deque()
        self._futures: dict[str, tuple[Future[Any], Callable[[Any], object]]] = {}
        #: what is open lets nothing else begin
        self._alone = False
        #: rows of writes that wait
        self._rows = 0
        self._clock = clock
        #: rows that it takes in `LONGEST_WAITING` by what the last write took; 0: any number
        self.most = first
        self._measured = False
        #: rows of the open write, and when it began
        self._writing, self._began = 0, 0.0
        #: something is not done
        self.open = False

    @property
    def full(self) -> bool:
        """Return whether so many rows wait that it should be given no more."""
        return self._rows >= (self.most or MOST_WAITING)

    def write(self, call: Callable[[], Any], rows: int) -> None:
        """Have it take rows. Raises SinkError, UserError."""
        if self.open:
            self.call("write", call, _nothing, rows)
            return
        result = call_sink(self._name, "write", call)
        if result is not None or self.most:
            self._begun("write", result, _nothing, rows)

    def call(self, hook: str, call: Callable[[], Any], done: Callable[[Any], object], rows: int = 0) -> None:
        """Call a hook, at once or later; `done` is given what it comes to. Raises SinkError, UserError."""
        if self._waiting or self._alone or hook in self._futures:
            self._waiting.append((hook, call, done, rows))
            self._rows += rows
        else:
            self._begun(hook, call_sink(self._name, hook, call), done, rows)

    def _begun(self, hook: str, result: Any, done: Callable[[Any], object], rows: int = 0) -> None:
        future = None if result is None else future_of(result, self._background)
        if future is None:
            if hook == "write" and self.most:
                self._allow(16 * self.most)
            done(result)
            return
        if hook == "write":
            self._writing, self._began = rows, self._clock()
            # Until it is known how long it takes, no more than these wait behind it.
            if not self._measured and not self.most:
                self._allow(rows)
        self._futures[hook] = future, done
        self._alone = self._alone or hook == "write" or future is not result
        self._note(True)
        future.add_done_callback(lambda future: self._wake())

    def advance(self) -> None:
        """Take what is done, and call what waited for it. Raises SinkError, UserError."""
        for hook, (future, done) in list(self._futures.items()):
            if future.done():
                del self._futures[hook]
                if hook == "write":
                    self._measure()
                # Where nothing else may begin, this one was the last that had.
                self._alone = self._alone and bool(self._futures)
                done(call_sink(self._name, hook, future.result))
        while self._waiting and not self._alone and self._waiting[0][0] not in self._futures:
            hook, call, done, rows = self._waiting.popleft()
            self._rows -= rows
            self._begun(hook, call_sink(self._name, hook, call), done, rows)
        self._note(bool(self._futures or self._waiting))

    def _measure(self) -> None:
        """Learn from a write that is done how many rows it takes in time."""
        self._measured = True
        took = self._clock() - self._began
        self._allow(int(self._writing * LONGEST_WAITING / took) if took > 0 else MOST_WAITING)

    def _allow(self, rows: int) -> None:
        self.most = max(1, rows) if rows < MOST_WAITING else 0

    def _note(self, open: bool) -> None:
        if open and not self.open:
            self._opened.append(self)
        elif self.open and not open:
            self._opened.remove(self)
        self.open = open

    def wait_for(self, hook: str, call: Callable[[], Any]) -> None:
        """Call a hook and wait until it is done. Raises SinkError, UserError."""
        call_sink(self._name, hook, lambda: waited(call(), self._background))

    def finish(self) -> None:
        """Wait until all is done. Raises SinkError, UserError."""
        while self.open:
            for future, _ in list(self._futures.values()):
                with suppress(Exception):
                    future.result()
            self.advance()

    def abandon(self) -> None:
        """Give up what is not done: what has begun is cancelled, or waited for where it cannot be."""
        self._waiting.clear()
        self._rows = 0
        for future, _ in self._futures.values():
            future.cancel()
        for future, _ in self._futures.values():
            with suppress(BaseException):
                future.result()
        self._futures.clear()
        self._alone = False
        self._note(False)
