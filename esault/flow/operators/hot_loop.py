"""The place of a bolt's calls where there are many: the loop with its `process` written out, once that is worth it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import repeat
from operator import length_hint
from typing import TYPE_CHECKING, Any

from esault.flow.operators.emitter import Emitter

if TYPE_CHECKING:
    from esault.topology.process_loop import ProcessLoop

__all__ = ["HOT", "MANY", "HotLoop"]

#: tuples of a unit until it is written out, which takes as long as it saves with some ten thousand
HOT = 20_000
#: objects that a processor's cache does not hold
MANY = 30_000


class HotLoop:
    """Runs batches of one class's objects, when `ready`."""

    def __init__(self, emitter: Emitter, keyed: bool, in_thread: Callable[[Callable[[], Any]], Any]) -> None:
        """`keyed`: there is one object per key, and no one object. `in_thread`: `Context.in_thread`."""
        self._emitter = emitter
        self._keyed = keyed
        self._in_thread = in_thread
        #: the loop that is being written out beside the data loop, which would stand still for some ten milliseconds
        self._written: Future[ProcessLoop | None] | None = None
        self._left = HOT
        self._loop: ProcessLoop | None = None
        self._asked = False
        #: of the batch that runs
        self._rows: Any = iter(())
        #: the objects of its tuples, where they were looked up at once
        self._known: list[Any] = []
        #: objects leave while a batch runs
        self._they_leave = False

    def ready(self, cls: type[Any], count: int, with_ids: bool) -> bool:
        """Return whether `run` may take the place of the calls for a batch of so many tuples."""
        if self._left > 0:
            self._left -= count
            return False
        if not self._asked:
            if not self._emitter.trusted:
                return False
            self._asked = True
            if type(self._emitter) is Emitter:
                written = self._in_thread(partial(_write, cls, self._keyed, with_ids))
                self._loop, self._written = (None, written) if isinstance(written, Future) else (written, None)
        if self._written is not None:
            if not self._written.done():
                return False
            self._loop, self._written = self._written.result(), None
        loop = self._loop
        if loop is None or not loop.stands_for(cls.process) or (with_ids and self._emitter.only_column is None):
            return False
        # What follows calls and lines is to see them as they are.
        return sys.gettrace() is None and sys.getprofile() is None

    def run(self, objects: Any, keys: Sequence[Any], values: Sequence[Any], ids: Sequence[str] | None) -> None:
        """Process a batch; `objects`: the object, or those by key. What the user's code raises comes as it is."""
        loop, emitter, out = self._loop, self._emitter, self._emitter.outs[""]
        assert loop is not None
        before = len(out.values)
        lengths: list[int] = []
        try:
            if loop.maps and not self._keyed:
                out.values += self.mapped(values)
                out.keys += keys
                if ids is not None:
                    lengths = list(range(before, len(out.keys)))
            else:
                rows = self._tuples(objects, keys, values)
                loop.loop(self._keyed, ids is not None)(rows, objects, out.keys, out.values, lengths)
        except BaseException as error:
            loop.between(error)
            raise
        if ids is not None:
            lengths.append(len(out.keys))
            emitter.name_each(ids, lengths[1:])

    def run_careful(
        self,
        objects: Any,
        keys: Sequence[Any],
        values: Sequence[Any],
        ids: Sequence[str] | None,
        failed: Callable[[int, BaseException], None],
    ) -> None:
        """The same, but `failed` is told of each tuple that raises, by its place, and the rest goes on; what it has emitted is forgotten."""
        emitter, out = self._emitter, self._emitter.outs[""]
        assert self._loop is not None
        loop = self._loop.loop(self._keyed, True)
        rows = self._tuples(objects, keys, values)
        lengths: list[int] = []
        while True:
            try:
                loop(rows, objects, out.keys, out.values, lengths)
                break
            except (KeyboardInterrupt, GeneratorExit):
                raise
            except BaseException as raised:
                error = raised
            # Not in the `except`: what another try raises would come with this error before it.
            self._loop.between(error)
            del out.keys[lengths[-1] :], out.values[lengths[-1] :]
            failed(len(keys) - length_hint(self._rows) - 1, error)
            del error
        if ids is not None:
            lengths.append(len(out.keys))
            emitter.name_each(ids, lengths[1:])

    def _tuples(self, objects: Any, keys: Sequence[Any], values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
        """Return what the loop goes over, with the objects of all keys where there are many, and None for those that the loop looks up.

        Looked up at once: a processor waits for memory of several at a time where little else is done in between, which takes a quarter
        off of what a row costs with a million keys. An object that is made meanwhile is looked up in the loop.
        """
        rows = self._rows = iter(keys)
        if not self._keyed:
            return zip(rows, values)
        known: Iterable[Any] = repeat(None)
        if len(objects) >= MANY and not self._they_leave:
            with contextlib.suppress(Exception):  # one that is no key: its row says so
                known = self._known = list(map(objects.get, keys))
        return zip(rows, values, known)

    def look_up_anew(self) -> None:
        """Forget which objects were looked up: one of them has left. From now on none is before its tuple."""
        if not self._they_leave:
            self._they_leave = True
            self._known[:] = repeat(None, len(self._known))

    @property
    def loop(self) -> ProcessLoop | None:
        """Return what is written out, once it is; None where nothing can be."""
        return self._loop

    @property
    def maps(self) -> bool:
        """Return whether each tuple is known to bring forth one with its key, whose value follows from its own: there is `mapped`."""
        return self._loop is not None and self._loop.maps and not self._keyed

    def mapped(self, values: Sequence[Any]) -> list[Any]:
        """Process a batch where it `maps`, and return the values. What the user's code raises comes as it is."""
        assert self._loop is not None
        self._rows = iter(values)
        return self._loop.map()(self._rows)

    def key(self, keys: Sequence[Any]) -> Any:
        """Return the key of the tuple that raised."""
        return keys[len(keys) - length_hint(self._rows) - 1]


def _write(cls: type[Any], keyed: bool, with_ids: bool) -> ProcessLoop | None:
    """Write out what the first batch will run; None where the class does not allow it."""
    from esault.topology.process_loop import process_loop  # it takes time to load, and few runs need it

    made = process_loop(cls)
    if made is not None and made.maps and not keyed:
        made.map()
    elif made is not None:
        made.loop(keyed, with_ids)
    return made
