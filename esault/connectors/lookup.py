"""Tables on a server that are looked up row by row: a cache, and one thread that asks for many keys at once.

A sub-unit has many calls open, each of which wants one key. They wait here together: while one question is on its way the keys of all
others gather for the next. So there is one connection in a process, no data loop waits for it, and the more is asked the more keys go
into one question.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import islice
from typing import Any, ClassVar

from esault.errors import EsaultError, SourceError, TopologyError
from esault.topology.arguments import check_seconds
from esault.topology.context import Context

__all__ = ["Lookup"]

#: seconds without a question after which the connection is let go
IDLE = 30.0
#: metrics: name, and what is counted
_HITS = "lookup_cache_hits", "Look-ups that the cache of a table answered"
_MISSES = "lookup_cache_misses", "Look-ups that waited for the server of a table"
#: in place of what is not in the cache
_UNKNOWN: Any = object()


class Lookup:
    """A table that is asked by `await table(key)`, for `stream.enrich(name, table, of=...)`; a subclass says how in `_fetch`.

    Args:
        max_rows: keys that the cache of a process holds; those used longest ago go first. 0: no cache.
        expire_after_write: seconds for which what was found is taken for true; None: until there is no room for it.
        cache_missing_key: whether it is kept, too, that a key is not there.
        max_batch: keys in one question.
    """

    delivery_guarantee: ClassVar[str] = (
        "a tuple that comes again is looked up anew: the row may have changed; it is expire_after_write seconds old at most"
    )

    def __init__(
        self,
        who: str,
        max_rows: int,
        expire_after_write: float | None,
        cache_missing_key: bool,
        max_batch: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        for name, number, least in (("max_rows", max_rows, 0), ("max_batch", max_batch, 1)):
            if isinstance(number, bool) or not isinstance(number, int) or number < least:
                raise TopologyError(f"{who}: {name}={number!r} must be a whole number from {least} on")
        if expire_after_write is not None:
            expire_after_write = check_seconds(who, "expire_after_write", expire_after_write)
        self._who, self._clock = who, clock
        self._max_rows, self._expire_after, self._keeps_missing = max_rows, expire_after_write, bool(cache_missing_key)
        self._max_batch = max_batch
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        #: what the two sides share, and the lock around it
        self._changed = threading.Condition()
        #: key -> (what was found, when that is no longer taken for true)
        self._cache: OrderedDict[Any, tuple[Any, float]] = OrderedDict()
        #: key -> those that wait for it; in the order in which the server is to be asked
        self._wanted: dict[Any, list[_Waiter]] = {}
        self._thread: threading.Thread | None = None

    # what a connector defines ------------------------------------------------------------------------

    def check(self) -> None:
        """Raise SourceError where nothing can be looked up: no server, a wrong password, table or column."""
        raise NotImplementedError

    def _fetch(self, keys: Sequence[Any]) -> Mapping[Any, Any]:
        """Return what the server has under these keys, and for a key that it refuses the error.

        In a thread; waits for a server that is away. Raises EsaultError, which all these keys get.
        """
        raise NotImplementedError

    def _disconnect(self) -> None:
        """Let go of the connection."""
        raise NotImplementedError

    # in the data loop ----------------------------------------------------------------------------------

    async def __call__(self, key: Any) -> Any:
        """Return what the table has under `key`, or None. Raises SourceError."""
        return await self.counted(key, None)

    async def counted(self, key: Any, context: Context | None) -> Any:
        """Do the same, and count in the metrics of `context` whether the cache had it."""
        if key is None:
            return None
        if self._process != os.getpid():  # forked: neither the thread nor its connection is here
            self._begin()
        try:
            with self._changed:
                found = self._cached(key)
                if found is _UNKNOWN:
                    waiter = self._wait_for(key)
        except TypeError as error:
            raise SourceError(f"{self._who}: {key!r} is no key: {error}; take a text, a number or a tuple") from None
        if context is not None:
            self._count(_MISSES if found is _UNKNOWN else _HITS, context)
        return _own(found if found is not _UNKNOWN else await waiter.future)

    def known(self, key: Any, context: Context) -> tuple[bool, Any]:
        """Return whether the cache has it, which is counted then, and what it has: nothing waits for that. Raises TypeError for no key."""
        if key is None:
            return True, None
        if self._process != os.getpid():
            return False, None
        with self._changed:
            found = self._cached(key)
        if found is _UNKNOWN:
            return False, None
        self._count(_HITS, context)
        return True, _own(found)

    def _count(self, metric: tuple[str, str], context: Context) -> None:
        name, what = metric
        context.counter(name, what, table=self._who).inc()

    def _cached(self, key: Any) -> Any:
        entry = self._cache.get(key)
        if entry is None:
            return _UNKNOWN
        found, until = entry
        if self._clock() >= until:
            del self._cache[key]
            return _UNKNOWN
        self._cache.move_to_end(key)
        return found

    def _wait_for(self, key: Any) -> _Waiter:
        waiter = _Waiter()
        others = self._wanted.get(key)
        if others is not None:
            others.append(waiter)
            return waiter
        self._wanted[key] = [waiter]
        if self._thread is None:
            self._thread = threading.Thread(target=self._ask, name=f"esault {self._who}", daemon=True)
            self._thread.start()
        self._changed.notify()
        return waiter

    # in the thread -------------------------------------------------------------------------------------

    def _ask(self) -> None:
        while True:
            with self._changed:
                if not self._changed.wait_for(lambda: self._wanted, IDLE):
                    self._disconnect()
                    self._thread = None
                    return
                keys = list(islice(self._wanted, self._max_batch))
            try:
                found = self._fetch(keys)
            except EsaultError as error:
                found = dict.fromkeys(keys, error)
            except BaseException as error:  # a mistake here: those who wait must hear of it
                found = dict.fromkeys(keys, SourceError(f"{self._who}: {type(error).__name__}: {error}"))
            with self._changed:
                self._keep(keys, found)
                answers = [(waiter, found.get(key)) for key in keys for waiter in self._wanted.pop(key)]
            _answer(answers)

    def _keep(self, keys: Collection[Any], found: Mapping[Any, Any]) -> None:
        until = float("inf") if self._expire_after is None else self._clock() + self._expire_after
        for key in keys:
            each = found.get(key)
            if isinstance(each, Exception) or (each is None and not self._keeps_missing):
                continue
            self._cache[key] = each, until
            self._cache.move_to_end(key)
        while len(self._cache) > self._max_rows:
            self._cache.popitem(last=False)

    def __getstate__(self) -> dict[str, Any]:
        """Return the options, without what is of one process: topologies may be copied."""
        ours = ("_process", "_changed", "_cache", "_wanted", "_thread")
        return {name: value for name, value in vars(self).items() if name not in ours}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._begin()


class _Waiter:
    """One that waits for a key, in an event loop."""

    __slots__ = ("future", "loop")

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()

    def set(self, found: Any) -> None:
        if self.future.done():  # cancelled: the sub-unit has ended
            return
        if isinstance(found, EsaultError):
            self.future.set_exception(type(found)(str(found)))  # one for each: it gets the trace of its own way
        else:
            self.future.set_result(found)


def _answer(answers: Sequence[tuple[_Waiter, Any]]) -> None:
    """Wake each event loop once."""
    by_loop: dict[Any, list[tuple[_Waiter, Any]]] = {}
    for waiter, found in answers:
        by_loop.setdefault(waiter.loop, []).append((waiter, found))
    for loop, ours in by_loop.items():
        with contextlib.suppress(RuntimeError):  # its sub-unit has ended
            loop.call_soon_threadsafe(_set_all, ours)


def _set_all(answers: Sequence[tuple[_Waiter, Any]]) -> None:
    for waiter, found in answers:
        waiter.set(found)


def _own(found: Any) -> Any:
    """A dict is copied: the cache's own is not to be changed by what gets it."""
    return dict(found) if type(found) is dict else found
