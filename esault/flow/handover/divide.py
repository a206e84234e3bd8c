"""Dividing a batch: the only way to treat its rows differently (docs/explanation/delivery.md, Roots and the ledger)."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Container, Hashable, Sequence
from heapq import heapify, heapreplace
from typing import Any, NamedTuple

from esault.flow.channel.frame import Batch
from esault.flow.delivery.acks import Acks
from esault.payload.column import plain, take
from esault.payload.column_wire import wired
from esault.routing.ring import RING, is_ambiguous, position

__all__ = ["DealtRows", "Divider", "Entry", "MovedKeys", "cut", "divide", "in_rows", "wired_batch"]


class Entry(NamedTuple):
    """A batch that waits to be processed."""

    #: when its frame was packed
    sent: float
    batch: Batch
    #: its id is out of `p` already: its holder took it over
    taken: bool = False


class MovedKeys(dict[Any, int]):
    """Key -> who it moves to or comes from; 0 where it stays. Filled as keys come."""

    __slots__ = ("_everything", "_ranges")

    @property
    def everything(self) -> int | None:
        """To or from whom all keys move; None where each key must be looked at."""
        return self._ranges[0][2] if self._everything else None

    def __init__(self, ranges: Sequence[tuple[int, int, int]], everything: bool = False) -> None:
        """`ranges` are (first, last place, incarnation). With `everything` all rows belong to the first range."""
        super().__init__()
        self._ranges = sorted(ranges)
        self._everything = everything

    def __missing__(self, key: Any) -> int:
        found = self.owner_of(key)
        if not self._everything and (type(key) is str or not is_ambiguous(key)):
            self[key] = found
        return found

    def of_rows(self, keys: Any) -> list[int]:
        """Return the same for each row of a column of keys."""
        return [self[key] for key in plain(keys)]

    def of_rows_but(self, here: Container[Any], waiting: Container[Any], keys: Any) -> list[int]:
        """Return the same, and 0 for keys that are here and wait for nothing: their places need not be computed."""
        return [0 if key in here and key not in waiting else self[key] for key in plain(keys)]

    def owner_of(self, key: Any) -> int:
        """Return the same and keep nothing: for a look at each of a million keys, which is half as long then."""
        return self._ranges[0][2] if self._everything else self.owner_at(position(key))

    def owner_at(self, place: int) -> int:
        """Return the same for the key at this place."""
        if self._everything:
            return self._ranges[0][2]
        for low, high, incarnation in self._ranges:
            if low <= place <= high:
                return incarnation
        return 0

    def of(self, incarnation: int) -> list[tuple[int, int]]:
        """The ranges that move to or come from this one."""
        return [(low, high) for low, high, who in self._ranges if who == incarnation]

    def rename(self, old: int, new: int) -> None:
        """Another incarnation in place of one."""
        self._ranges = [(low, high, new if who == old else who) for low, high, who in self._ranges]
        self.clear()


class DealtRows:
    """Owners of the rows that wait, where any sub-unit will do; 0 where one stays.

    Each range of places stands for a share of the rows, and what is left for those that stay. They are dealt in turn, by
    stride scheduling, so that of a few rows, too, each gets its share.
    """

    __slots__ = ("_owners", "_strides", "_turns")

    everything = None

    def __init__(self, ranges: Sequence[tuple[int, int, int]]) -> None:
        """`ranges` are (first, last place, incarnation)."""
        shares = [high - low + 1 for low, high, _ in ranges]
        stays = RING - sum(shares)
        self._owners = [0] * (stays > 0) + [incarnation for _, _, incarnation in ranges]
        self._strides = [RING / share for share in [stays] * (stays > 0) + shares]
        #: whose turn it is when, the next one first
        self._turns = [(stride / 2, i) for i, stride in enumerate(self._strides)]
        heapify(self._turns)

    def of_rows(self, keys: Any) -> list[int]:
        """Return who gets each of the next rows."""
        return [self._next() for _ in range(len(keys))]

    def _next(self) -> int:
        at, i = self._turns[0]
        heapreplace(self._turns, (at + self._strides[i], i))
        return self._owners[i]

    def rename(self, old: int, new: int) -> None:
        """Another incarnation in place of one."""
        self._owners = [new if who == old else who for who in self._owners]


def divide(
    entry: Entry, parts: Sequence[Hashable], random64: Callable[[], int], acks: Acks | None
) -> dict[Hashable, Entry]:
    """The entry's rows by the part each belongs to, in order. Parts of a divided batch have new ids.

    The ledger is told `id ^ id1 ^ id2 ...` in one word, so that the root is never done in between. `acks` is None
    where nothing is acked.
    """
    first = parts[0]
    if parts.count(first) == len(parts):
        return {first: entry}
    rows: dict[Hashable, list[int]] = {}
    for i, part in enumerate(parts):
        rows.setdefault(part, []).append(i)
    batch = entry.batch
    divided: dict[Hashable, Entry] = {}
    total = batch.id
    for part, chosen in rows.items():
        id = random64() if acks is not None else 0
        total ^= id
        divided[part] = entry._replace(
            batch=batch._replace(
                id=id,
                keys=_pick(batch.keys, chosen),
                values=_pick(batch.values, chosen),
                ids=None if batch.ids is None else tuple([batch.ids[i] for i in chosen]),
            )
        )
    if acks is not None:
        acks.add(batch.root, 0 if entry.taken else total, total)
    return divided


def _pick(column: Any, chosen: Sequence[int]) -> Any:
    return tuple([column[i] for i in chosen]) if type(column) is tuple else take(column, array("q", chosen))


def cut(entry: Entry, first: int, random64: Callable[[], int], acks: Acks | None) -> tuple[Entry, Entry]:
    """The first rows of an entry and the rest, which is some; arrays stay where they are. Else as `divide`."""
    batch = entry.batch
    ids = (random64(), random64()) if acks is not None else (0, 0)
    parts = []
    for id, rows in zip(ids, (slice(first), slice(first, None))):
        named = None if batch.ids is None else batch.ids[rows]
        part = batch._replace(id=id, keys=batch.keys[rows], values=batch.values[rows], ids=named)
        parts.append(entry._replace(batch=part))
    if acks is not None:
        total = batch.id ^ ids[0] ^ ids[1]
        acks.add(batch.root, 0 if entry.taken else total, total)
    return parts[0], parts[1]


def in_rows(batch: Batch) -> Batch:
    """The batch with plain Python objects in its columns."""
    return batch._replace(keys=tuple(plain(batch.keys)), values=tuple(plain(batch.values)))


def wired_batch(batch: Batch) -> Batch:
    """The batch as the codec packs it."""
    return batch._replace(keys=wired(batch.keys), values=wired(batch.values))


class Divider:
    """Divides by key, and takes parts over: their ids leave `p` so that the window does not wait for the change.

    Rows that are dealt are not taken over: what waits beyond the window is dealt by the senders.
    """

    def __init__(
        self, moved: MovedKeys | DealtRows, random64: Callable[[], int], acks: Acks | None, hold_rows: int
    ) -> None:
        self.moved = moved
        self.random64 = random64
        self.acks = acks
        #: rows that may still be taken over; beyond, the window closes, and memory is bounded
        self._room = 0 if self.dealt else hold_rows

    @property
    def dealt(self) -> bool:
        """Return whether rows alone move, and any of them may."""
        return isinstance(self.moved, DealtRows)

    def __call__(self, entry: Entry) -> dict[Hashable, Entry]:
        """The entry by incarnation; 0 holds what stays."""
        if self.moved.everything is not None:
            return {self.moved.everything: entry}
        return divide(entry, self.moved.of_rows(entry.batch.keys), self.random64, self.acks)

    def take_over(self, entry: Entry) -> Entry:
        """Take an entry over: it is acked in `p`, and its processing will ack only what it brings forth there."""
        if entry.taken or self.acks is None or self._room <= 0:
            return entry
        self._room -= len(entry.batch.keys)
        self.acks.add(entry.batch.root, entry.batch.id, 0)
        return entry._replace(taken=True)
