"""The living replica's side when another one is brought up to date: the state of one moment, to those who lack it.

The moment is that at which the mark of this replica has come from every sender: the same place among the rows at which the sender
began to send to the newcomer. The newcomer takes part as the new owner of a change does (`StateReceiver`), with no carried rows:
what stands before the mark was processed here, what comes behind it comes to both.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from esault.flow.checkpoint.snapshot import Snapshot
from esault.flow.delivery.acks import Post
from esault.flow.handover.divide import MovedKeys
from esault.flow.handover.state_sender import PORTION_BYTES, PORTION_KEYS
from esault.flow.handover.unconfirmed import Unconfirmed
from esault.routing.ring import Name

__all__ = ["Copying"]


class Source(Protocol):
    """The place where the state of keys lives: `OperatorState`."""

    def names(self) -> list[Name]:
        """Names of all elements."""
        ...

    def key_of(self, name: Name) -> Any:
        """The key as it travels."""
        ...

    def name_of(self, key: Any) -> Name:
        """The name of the element of this key."""
        ...

    def peek(self, name: Name) -> bytes | None:
        """The packed state of an element, which stays; None if there is none."""
        ...


class Copying:
    """Sends what `snapshot` writes; code that processes rows meanwhile must show it their keys before, as for a checkpoint."""

    def __init__(
        self,
        number: int,
        moves: Sequence[tuple[int, int, int]],
        posts: Mapping[int, Post],
        source: Source,
        clock: Callable[[], float],
        fence: Callable[[int, int], None],
    ) -> None:
        """`fence` is told of each portion before it goes: the number of the copy and its own."""
        self.number = number
        self._fence = fence
        self._out = Unconfirmed(number, posts, clock)
        self._to = MovedKeys(moves)
        self._source = source
        #: (new, key, state) that wait to be sent: what was asked for, and the rest
        self._asked: deque[tuple[int, Any, bytes]] = deque()
        self._rest: deque[tuple[int, Any, bytes]] = deque()
        names = [name for name in source.names() if self._to[source.key_of(name)]]
        #: names of what was not written yet or was: all others had no state at that moment
        self._known = set(names)
        self._written: set[Name] = set()
        self._asking = False
        self.snapshot = Snapshot(number, names, source, self, clock)
        for new in posts:
            self._out.rows(new, (number, ()))

    # takes the snapshot's states --------------------------------------------------------------------

    def add(self, key: Any, state: bytes | None) -> None:
        """The state of a key at the moment of the mark."""
        self._written.add(self._source.name_of(key))
        queue = self._asked if self._asking else self._rest
        queue.append((self._to[key], key, state or b""))

    def drop(self) -> None:
        """It is given up."""
        self._asked.clear()
        self._rest.clear()

    # what the newcomer says --------------------------------------------------------------------

    def fetch(self, new: int, keys: Sequence[Any]) -> None:
        """It holds rows of these keys: they go first."""
        self._asking = True
        for key in keys:
            name = self._source.name_of(key)
            if name not in self._known:
                self._asked.append((new, key, b""))
            elif name not in self._written:
                self.snapshot.before([name])
        self._asking = False

    def got(self, new: int, number: int) -> None:
        """It has this: that there are no rows, a portion, or the end."""
        self._out.got(new, number)

    # the loop ----------------------------------------------------------------------------------

    @property
    def full(self) -> bool:
        """Return whether enough is on its way."""
        return self._out.full

    def send(self) -> None:
        """Send what waits, as much as may be on its way, and again what may be lost."""
        self._out.look()
        while (self._asked or self._rest) and not self.full:
            portions: dict[int, list[tuple[Any, bytes]]] = {}
            size = count = 0
            while (self._asked or self._rest) and size < PORTION_BYTES and count < PORTION_KEYS:
                new, key, state = (self._asked or self._rest).popleft()
                portions.setdefault(new, []).append((key, state))
                size += len(state) + 16
                count += 1
            for new, items in portions.items():
                self._fence(self.number, self._out.number + 1)
                self._out.portion(new, items, sum(len(state) + 16 for _, state in items))
        if self.snapshot.done and not self._asked and not self._rest and not self._out.ended:
            self._fence(self.number, self._out.number + 1)
            self._out.end()

    @property
    def done(self) -> bool:
        """Return whether all went and was confirmed."""
        return self._out.done
