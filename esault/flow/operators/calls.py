"""Calls of user code that may wait: which may begin, so that few are open at once and never two of one key.

Plain bookkeeping: who runs a call, and what it waits for, is told by `next` and `over`.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from esault.routing.ring import Name

__all__ = ["FREE", "Call", "Calls", "Owner"]

#: in place of a name: the call stands in no other's way, as a tuple without a key
FREE: Any = object()


class Owner(Protocol):
    """The owner of calls, which knows what each is to do: an operator."""

    def call(self, call: Call) -> Any:
        """A coroutine that does it."""
        ...

    def at_once(self, call: Call) -> bool:
        """Do it where nothing has to wait; False: it has to be run."""
        ...


class Call:
    """A tuple that is to be processed, or another hook of an element that is to be called."""

    __slots__ = (
        "alone",
        "batch",
        "began",
        "emitted",
        "followed",
        "hook",
        "id",
        "input",
        "key",
        "name",
        "number",
        "over",
        "owner",
        "run",
        "then",
        "value",
    )

    def __init__(
        self,
        *,
        owner: Owner,
        name: Name,
        key: Any,
        value: Any,
        hook: str,
        run: Callable[[Call], Any],
        batch: Any = None,
        id: str | None = None,
        alone: bool = False,
        then: Callable[[], None] | None = None,
        input: int | None = None,
    ) -> None:
        self.owner = owner
        #: of the key; calls of one name are made one after the other, in the order in which they were added
        self.name = name
        self.key = key
        self.value = value
        #: "process", "tick", "finish" or "open"
        self.hook = hook
        #: does it; what it returns is awaited
        self.run = run
        #: what the tuple came with; None for other hooks than `process`
        self.batch = batch
        self.id = id
        #: of the bolt, that the tuple came by
        self.input = input
        #: nothing begins while it is open
        self.alone = alone
        #: called when it has ended, well or not
        self.then = then
        #: (stream, key, value) so far
        self.emitted: list[tuple[str, Any, Any]] = []
        #: it has ended: nothing may be emitted any more
        self.over = False
        #: the next one of its name has begun in its place
        self.followed = False
        #: in the order in which they were added
        self.number = 0
        #: seconds, by the clock of who began it
        self.began = 0.0

    def again(self) -> Call:
        """Return what emits for it in another try; what the try before has started emits no more."""
        made = copy.copy(self)
        made.over, made.emitted = False, []
        return made


class Calls:
    """At most `most` calls are open at once; others wait here, in the order of their keys' rows."""

    def __init__(self, most: int) -> None:
        self.most = most
        #: calls that have begun and whose results were not taken
        self.open = 0
        #: calls that have not begun, and those of them that are tuples
        self.waiting = self.rows = 0
        #: calls of other hooks than `process` that are not over
        self.hooks = 0
        #: so many so far
        self.added = 0
        self._ready: deque[Call] = deque()
        #: behind the call of a name that is ready or open: those that follow
        self._behind: dict[Name, deque[Call] | None] = {}
        self._open: set[Name] = set()
        self._alone = False

    def __bool__(self) -> bool:
        return self.open > 0 or self.waiting > 0

    def add(self, call: Call) -> None:
        """It may begin when those of its name before it are over."""
        self.added += 1
        call.number = self.added
        self.waiting += 1
        if call.hook == "process":
            self.rows += 1
        else:
            self.hooks += 1
        self._queue(call)

    def _queue(self, call: Call) -> None:
        name = call.name
        if name is FREE:
            self._ready.append(call)
        elif name not in self._behind:
            self._behind[name] = None
            self._ready.append(call)
        else:
            behind = self._behind[name]
            if behind is None:
                behind = self._behind[name] = deque()
            behind.append(call)

    @property
    def may_begin(self) -> bool:
        """Return whether there is room for another one."""
        return self.open < self.most and not self._alone

    @property
    def ready(self) -> bool:
        """Return whether one waits for nothing but room."""
        return bool(self._ready)

    def next(self) -> Call | None:
        """Begin the next one; None where none may."""
        if not self._ready or not self.may_begin or (self.open and self._ready[0].alone):
            return None
        call = self._ready.popleft()
        self.open += 1
        self.waiting -= 1
        if call.hook == "process":
            self.rows -= 1
        self._alone = call.alone
        if call.name is not FREE:
            self._open.add(call.name)
        return call

    def follow(self, call: Call) -> Call | None:
        """Begin the next one of its name in the place of one that has ended; None where there is none, or others wait for room.

        The results of the one before are taken later, as those of others are.
        """
        behind = None if call.name is FREE else self._behind.get(call.name)
        if not behind or self._ready or self._alone:
            return None
        call.followed = True
        following = behind.popleft()
        self.waiting -= 1
        if following.hook == "process":
            self.rows -= 1
        return following

    def over(self, call: Call) -> None:
        """It has ended and its results were taken."""
        if call.hook != "process":
            self.hooks -= 1
        if call.followed:
            return
        self.open -= 1
        self._alone = self._alone and not call.alone
        if call.name is not FREE:
            self._open.discard(call.name)
            self._follow(call.name)

    def _follow(self, name: Name) -> None:
        behind = self._behind[name]
        if behind:
            self._ready.append(behind.popleft())
        else:
            del self._behind[name]

    def busy(self, name: Name) -> bool:
        """Return whether a call of this name is open."""
        return name in self._open

    def queued(self, name: Name) -> bool:
        """Return whether a call of this name is open or waits."""
        return name in self._behind

    @property
    def names(self) -> Iterator[Name]:
        """Of calls that are open or wait."""
        return iter(self._behind)

    def recall(self) -> list[Call]:
        """Take back the tuples whose calls have not begun, in the order in which they were added; other hooks stay."""
        rows = [call for call in self._ready if call.hook == "process"]
        stay = [call for call in self._ready if call.hook != "process"]
        for name, behind in list(self._behind.items()):
            rows += [call for call in behind or () if call.hook == "process"]
            stay += [call for call in behind or () if call.hook != "process"]
            if name in self._open:
                self._behind[name] = None
            else:
                del self._behind[name]
        self._ready.clear()
        self.waiting -= len(rows)
        self.rows = 0
        for call in sorted(stay, key=lambda call: call.number):
            self._queue(call)
        return sorted(rows, key=lambda call: call.number)
