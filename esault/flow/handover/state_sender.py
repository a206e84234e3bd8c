"""The old owner's side of a change: carried rows and state, to one new owner or several.

It is one module of over 300 lines: what was asked for, the rest, and what is not confirmed share one account of what went.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any, Protocol

from esault.flow.delivery.acks import Post
from esault.flow.handover.divide import Divider, Entry, MovedKeys, wired_batch
from esault.flow.handover.unconfirmed import Unconfirmed
from esault.routing.ring import Name

__all__ = ["Busy", "StateSender", "Store"]

#: a portion of state, bytes and keys at most
PORTION_BYTES, PORTION_KEYS = 32 << 10, 256
#: keys looked at between two looks at the clock: where states are on a disk a key takes twenty times as long as in memory
SLICE = 16


#: seconds that rows which any sub-unit may have wait for the senders at most: what these sent before is dealt out, too
PATIENCE = 0.1


class Busy(Exception):
    """A call of the element is open: its state cannot go yet."""


class Store(Protocol):
    """The place where the state of keys lives: `OperatorState`."""

    def scan(self) -> Iterator[Name]:
        """Names of all elements that are here now, bit by bit while some of them leave."""
        ...

    @property
    def here(self) -> Container[Any]:
        """Keys of elements that are in memory as objects; none, where that is not known."""
        ...

    def note_made(self, names: list[Name] | None) -> bool:
        """From now on add the names of elements that are made or restored to these, or to none; whether that can be."""
        ...

    def key_of(self, name: Name) -> Any:
        """The key as it travels."""
        ...

    def remove_state(self, name: Name) -> bytes | None:
        """Take an element out, closed; its packed state, or None if there is none. Raises Busy."""
        ...

    def name_of(self, key: Any) -> Name:
        """The name of the element of this key."""
        ...

    def install_state(self, key: Any, state: bytes) -> None:
        """Take a key over, with its state."""
        ...

    def ring_state(self, ranges: Sequence[tuple[int, int]]) -> Any:
        """Pack what the new owner of these ranges must know besides the state of their keys; None: nothing."""
        ...

    def install_ring_state(self, said: Any) -> None:
        """Take in what the old owner said so. Raises FrameError."""
        ...

    def broadcast_copy(self) -> bytes | None:
        """Pack the broadcast state, for a new sub-unit; None: there is none."""
        ...

    def install_broadcast(self, state: bytes) -> None:
        """Take in the broadcast state of another sub-unit. Raises StateError."""
        ...


class StateSender:
    """One change in which this sub-unit gives keys away.

    From its making on, `divide` must see every batch before it is processed. `senders` must each say that they send
    by the new table (or be gone) before the carried rows go; state goes meanwhile, bit by bit. Where rows alone move, and
    any of them may, they wait for no sender that takes long.
    """

    def __init__(
        self,
        version: int,
        divider: Divider,
        posts: Mapping[int, Post],
        senders: Sequence[int],
        store: Store,
        clock: Callable[[], float],
        fence: Callable[[int, int, int], None],
        copies: bool = False,
        names: Iterator[tuple[int, Name]] | None = None,
    ) -> None:
        """`names`: the elements whose state goes, with their new owners, 0 for one that stays; None: rows alone move.

        `fence` is told of each portion before it goes: its version, its number, and 0. `copies`: the broadcast state goes along.
        """
        self.version = version
        self._copies = copies
        self._divider = divider
        self._out = Unconfirmed(version, posts, clock)
        self._waiting = set(senders)
        self._store = store
        self._clock = clock
        self._fence = fence
        self._carried: dict[int, list[Entry]] = {new: [] for new in posts}
        self._rows_sent = False
        moved = divider.moved
        self._keys = moved if isinstance(moved, MovedKeys) else None
        #: when the rows go, with or without the barriers
        self._rows_by = math.inf if self._keys is not None else clock() + PATIENCE
        self._scan = names
        #: keys that a new owner asked for
        self._asked: deque[tuple[int, Any]] = deque()
        #: (new, key, name) of elements that were busy
        self._busy: list[tuple[int, Any, Name]] = []
        self._portions: dict[int, list[tuple[Any, bytes]]] = {new: [] for new in posts}
        self._sizes: dict[int, int] = dict.fromkeys(posts, 0)
        self.moved_keys = 0
        self.moved_bytes = 0

    # rows ------------------------------------------------------------------------------------------

    def divide(self, entry: Entry) -> Entry | None:
        """Return the part of the entry that stays here; what moves is carried."""
        parts = self._divider(entry)
        for new, part in parts.items():
            if new:
                self._carried[new].append(self._divider.take_over(part))  # type: ignore[index]
        return parts.get(0)

    def barrier(self, sender: int) -> None:
        """This sender sends by the new table, or is gone."""
        self._waiting.discard(sender)

    @property
    def aligned(self) -> bool:
        """All carried rows went: no row of a moved key will come any more."""
        return self._rows_sent

    @property
    def rows_at(self) -> float:
        """The time at which the carried rows go, with or without the barriers."""
        return math.inf if self._rows_sent else self._rows_by

    @property
    def carrying(self) -> int:
        """Rows that have not gone."""
        return sum([len(entry.batch.keys) for entries in self._carried.values() for entry in entries])

    # state -----------------------------------------------------------------------------------------

    def fetch(self, new: int, keys: Sequence[Any]) -> None:
        """A new owner holds rows of these keys: they go first."""
        if self._out.ended or new not in self._out.posts:
            return  # all that there is has gone already, or it died, and its successor asks anew
        self._asked.extend([(new, key) for key in keys])

    def got(self, new: int, number: int) -> None:
        """A new owner has this: its rows, a portion, or the end."""
        self._out.got(new, number)

    @property
    def again_at(self) -> float:
        """The time at which what is not confirmed goes again."""
        return self._out.again_at

    @property
    def scanning(self) -> bool:
        """Return whether there is state that has not been sent and may be."""
        return self._scan is not None and not self._out.full

    def advance(self, seconds: float, bulk: bool = True, settled: bool = True) -> bool:
        """Send what was asked for and, with `bulk`, for so long, what was not; True while there is more to do at once.

        `settled`: the broadcast state is that of the barriers.
        """
        self._out.look()
        if not self._rows_sent and settled and (not self._waiting or self._clock() >= self._rows_by):
            copy = self._copy
            self._rows_sent = True
            for new, entries in self._carried.items():
                beside = None if self._keys is None else self._store.ring_state(self._keys.of(new))
                rows = tuple((e.sent, tuple(wired_batch(e.batch)), e.taken) for e in entries)
                body = (self.version, rows) if beside is None else (self.version, rows, beside)
                self._out.rows(new, body if copy is None else (self.version, rows, beside, copy))
            self._carried = {new: [] for new in self._out.posts}
        until = self._clock() + seconds
        name_of = self._store.name_of
        busy, self._busy = self._busy, []
        for new, key, name in busy:
            self._give(new, key, name)
        while self._asked:
            for _ in range(min(SLICE, len(self._asked))):
                new, key = self._asked.popleft()
                self._give(new, key, name_of(key))
            if self._clock() >= until:
                break
        for new in self._out.posts:
            if self._portions[new]:
                self._send_portion(new)
        if self._asked:
            return True
        if self._out.full:
            return False  # the other side must read first: what it asks for must not stand behind much else
        while self._scan is not None and bulk:
            for _ in range(SLICE):
                found = next(self._scan, None)
                if found is None:
                    self._scan = None
                    break
                new, name = found
                if new:
                    try:
                        state = self._store.remove_state(name)
                    except Busy:
                        self._busy.append((new, self._store.key_of(name), name))
                        continue
                    if state is not None:  # else it went when it was asked for
                        self._add(new, self._store.key_of(name), state)
            if self._clock() >= until or self._out.full:
                break
        for new in self._out.posts:
            if self._portions[new]:
                self._send_portion(new)
        if self._scan is None and self._rows_sent and not self._busy and not self._out.ended:
            self._fence(self.version, self._out.number + 1, 0)
            self._out.end()
        return self.scanning and bulk

    @property
    def _copy(self) -> bytes | None:
        return self._store.broadcast_copy() if self._copies else None

    def _give(self, new: int, key: Any, name: Name) -> None:
        """Send the state of one element, or that there is none; later if it is busy."""
        try:
            self._add(new, key, self._store.remove_state(name))
        except Busy:
            self._busy.append((new, key, name))

    def _add(self, new: int, key: Any, state: bytes | None) -> None:
        portion = self._portions[new]
        if state is None:
            portion.append((key, b""))
        else:
            portion.append((key, state))
            size = len(state)
            self.moved_keys += 1
            self.moved_bytes += size
            size = self._sizes[new] = self._sizes[new] + size + 16
            if size >= PORTION_BYTES:
                self._send_portion(new)
                return
        if len(portion) >= PORTION_KEYS:
            self._send_portion(new)

    def _send_portion(self, new: int) -> None:
        portion, size = self._portions[new], self._sizes[new]
        self._portions[new], self._sizes[new] = [], 0
        self._fence(self.version, self._out.number + 1, 0)
        self._out.portion(new, portion, size)

    @property
    def news(self) -> tuple[int, ...]:
        """The new owners."""
        return tuple(self._out.posts)

    @property
    def done(self) -> bool:
        """Everything went and was confirmed."""
        return self._out.done

    # faults ----------------------------------------------------------------------------------------

    def replace(self, dead: int, new: int, post: Post) -> None:
        """A new owner died and has a successor: what the dead one did not confirm goes again, to the successor.

        State that it had confirmed died with it. Carried rows that had been sent were not acked and will be replayed.
        """
        if dead not in self._out.posts:
            return
        self._divider.moved.rename(dead, new)
        self._carried[new] = self._carried.pop(dead)
        self._portions[new], self._sizes[new] = self._portions.pop(dead), self._sizes.pop(dead)
        self._asked = deque((new if n == dead else n, key) for n, key in self._asked)
        self._busy = [(new if n == dead else n, key, name) for n, key, name in self._busy]
        rows: Any = None
        if self._rows_sent:
            copy = self._copy
            rows = (self.version, ()) if copy is None else (self.version, (), None, copy)
        self._out.replace(dead, new, post, rows)
