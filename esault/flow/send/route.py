"""Layer one of the routing, at the sender: which sub-unit a row goes to (Zhan et al. 2017, two-layer routing).

One route for each edge. Behind a route stands the target's output table and a channel to each of its sub-units;
routes to the same unit share both. This is the route by key, and the base of those of the other groupings.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from operator import index
from types import MappingProxyType
from typing import Any

from esault.errors import PayloadError, TopologyError
from esault.flow.channel.array_batch import ArrayBatch, Numbers
from esault.flow.channel.channel import OutChannel
from esault.flow.channel.lineage import Lineage
from esault.flow.channel.refused_key import no_key, refused_keys
from esault.flow.operators.user_error import UserError, described
from esault.flow.send.unprocessed import UnprocessedRows
from esault.payload.column import PLAIN_TYPES, has_null
from esault.routing.many_keys import are_keys
from esault.routing.ring import is_ambiguous, position
from esault.routing.table import OutputTable
from esault.topology.plan import Edge

__all__ = ["BroadcastRoute", "KeyRoute", "OwnRoute", "Route"]


#: channels of a route; with more than these, a root reaches but some of them
MANY = 100


class Route:
    """Base: knows its channels in the order in which their owners stand on the ring."""

    #: tuples of hot keys that were split
    split_tuples = 0
    #: keys that are split, as text, and over how many sub-units
    split_keys: Mapping[str, int] = MappingProxyType({})
    #: counts what is not processed, for a route that looks at it; None: nothing says what is
    unprocessed: UnprocessedRows | None = None

    def __init__(self, unit: str, edge: Edge, cache_size: int) -> None:
        self._unit = unit
        self._edge = edge
        self._input = edge.input
        self._cache_size = cache_size
        self._table: OutputTable | None = None
        self._channels: list[OutChannel] = []

    def install(self, table: OutputTable, channels: Mapping[int, OutChannel]) -> None:
        """Route by this table from now on."""
        self._table = table
        self._channels = [channels[owner] for owner in table.owners()]

    def restart(self, turn: int) -> None:
        """Choose as if nothing had been sent, from this turn on, where rows go by turns."""

    def push(
        self, lineage: Lineage, keys: Sequence[Any], values: Sequence[Any], ids: Sequence[str] | None, now: float
    ) -> None:
        """Put rows into the channels they belong to."""
        raise NotImplementedError

    def push_arrays(self, lineage: Lineage, batch: ArrayBatch, ids: Sequence[str] | None, now: float) -> None:
        """The same with arrays; what goes to one channel stays arrays."""
        raise NotImplementedError

    def _send(
        self, numbers: Iterable[int], lineage: Lineage, batch: ArrayBatch, ids: Sequence[str] | None, now: float
    ) -> None:
        channels = [self._channels[number] for number in numbers]
        for rows, keys, values, part in batch.wired(ids):
            for channel in channels:
                channel.add_whole(lineage, self._input, rows, keys, values, part, now)


class _Cache(dict[Any, int]):
    """Key -> number of a channel, filled as keys come; cleared when full.

    Keys that Python takes for equal but are not (1 and True) are never kept, so they are computed each time.
    """

    __slots__ = ("_keys_of", "_numbers", "_owners", "_size", "_starts")

    def __init__(self, table: OutputTable, size: int) -> None:
        super().__init__()
        self._size = size
        #: keys by interval, of intervals that had none when this began: they change their owners one by one in a change in subscales
        self._keys_of: dict[int, list[Any]] = {}
        # Two flat lists are searched in C. In the sorted dict, which can be split and merged, a look-up in 10 000 intervals
        # takes five times as long.
        self._owners, self._starts, self._numbers = _flat(table)

    def turn_to(self, table: OutputTable) -> bool:
        """Go by this table, if it differs in the owners of intervals alone whose keys are known; False: nothing is changed."""
        owners, starts, numbers = _flat(table)
        if owners != self._owners[: len(owners)] or starts != self._starts:
            return False
        changed = [i for i, (old, new) in enumerate(zip(self._numbers, numbers)) if old != new]
        if not all(i in self._keys_of for i in changed):
            return False
        for i in changed:
            self.update(dict.fromkeys(self._keys_of[i], numbers[i]))
        self._owners, self._numbers = owners, numbers
        return True

    def keep(self, old: _Cache) -> None:
        """Take over from the cache of the table before what is still known: keys of owners all of whose ranges one owner has now.

        Computing the places of all keys anew takes a hundred times as long, and all of it while a change is on.
        """
        now: dict[int, set[int]] = {}
        for start in {*old._starts, *self._starts}:
            now.setdefault(old.at(start), set()).add(self.at(start))
        same = {number: owners.pop() for number, owners in now.items() if len(owners) == 1}
        for i, start in enumerate(self._starts):
            if old.at(start) not in same:
                self._keys_of[i] = []
        if all(number == other for number, other in same.items()) and len(same) == len(now):
            self.update(old)
        else:
            self.update([(key, same[number]) for key, number in old.items() if number in same])

    def at(self, place: int) -> int:
        """The number of the channel to the owner of this place."""
        return self._numbers[bisect_right(self._starts, place) - 1]

    def __missing__(self, key: Any) -> int:
        interval = bisect_right(self._starts, position(key)) - 1
        number = self._numbers[interval]
        if type(key) is str or not is_ambiguous(key):
            if len(self) >= self._size:
                self.clear()
                self._keys_of = {i: [] for i in range(len(self._starts))} if self._keys_of else {}
            self[key] = number
            if interval in self._keys_of:
                self._keys_of[interval].append(key)
        return number


def _flat(table: OutputTable) -> tuple[list[int], list[int], list[int]]:
    """Return the owners in ring order, the starts of all intervals, and for each the number of its owner among these."""
    owners = table.owners()
    numbers = {owner: i for i, owner in enumerate(owners)}
    pairs = table.snapshot()[1]
    return owners, [start for start, _ in pairs], [numbers[owner] for _, owner in pairs]


class KeyRoute(Route):
    """`by_key`: the owner of the key's place on the ring.

    Each key is looked at here, also where all go to one: what cannot be a key must not be found when the unit grows.
    """

    _cache: _Cache
    _numbers: Numbers
    #: the channel that all take
    _only: OutChannel | None

    def install(self, table: OutputTable, channels: Mapping[int, OutChannel]) -> None:
        again = self._table is not None
        super().install(table, channels)
        self._only = self._channels[0] if len(self._channels) == 1 else None
        if not again:
            self._cache = _Cache(table, self._cache_size)
        elif not self._cache.turn_to(table):
            before, self._cache = self._cache, _Cache(table, self._cache_size)
            self._cache.keep(before)
        self._numbers = Numbers(self._cache.__getitem__)

    def push(
        self, lineage: Lineage, keys: Sequence[Any], values: Sequence[Any], ids: Sequence[str] | None, now: float
    ) -> None:
        if not are_keys(keys):
            raise refused_keys(self._unit, keys)
        if self._only is not None:
            self._only.add(lineage, self._input, keys, values, ids, now)
            return
        try:
            numbers = list(map(self._cache.__getitem__, keys))
        except PayloadError as error:  # what a str holds shows only here
            raise refused_keys(self._unit, keys, str(error)) from None
        self._spread(numbers, lineage, keys, values, ids, now)

    def push_arrays(self, lineage: Lineage, batch: ArrayBatch, ids: Sequence[str] | None, now: float) -> None:
        if type(batch.keys) in PLAIN_TYPES:
            if not are_keys(batch.keys):
                raise refused_keys(self._unit, batch.keys)
        elif has_null(batch.keys):
            raise no_key(self._unit)
        if self._only is not None:
            self._send((0,), lineage, batch, ids, now)
            return
        try:
            numbers = self._numbers.of(batch.keys)
        except PayloadError as error:
            raise refused_keys(self._unit, batch.rows[0], str(error)) from None
        for number, part, part_ids in batch.divided(numbers, ids):
            self._send((number,), lineage, part, part_ids, now)

    def _spread(
        self,
        numbers: list[int],
        lineage: Lineage,
        keys: Sequence[Any],
        values: Sequence[Any],
        ids: Sequence[str] | None,
        now: float,
    ) -> None:
        channels = self._channels
        first = numbers[0]
        if numbers.count(first) == len(numbers):
            channels[first].add(lineage, self._input, keys, values, ids, now)
            return
        # A list of columns is faster than a dict, until there are more channels than a root has rows.
        columns: Any = (
            [([], []) for _ in channels]
            if len(channels) <= MANY
            else {number: ([], []) for number in dict.fromkeys(numbers)}
        )
        chosen = range(len(channels)) if len(channels) <= MANY else columns
        for number, key, value in zip(numbers, keys, values):
            part_keys, part_values = columns[number]
            part_keys.append(key)
            part_values.append(value)
        part_ids: dict[int, list[str]] | None = None
        if ids is not None:
            part_ids = {number: [] for number in chosen}
            for number, id in zip(numbers, ids):
                part_ids[number].append(id)
        for number in chosen:
            part_keys, part_values = columns[number]
            if part_keys:
                named = part_ids[number] if part_ids is not None else None
                channels[number].add(lineage, self._input, part_keys, part_values, named, now)


class BroadcastRoute(Route):
    """`broadcast` and `single`: every sub-unit there is."""

    def push(
        self, lineage: Lineage, keys: Sequence[Any], values: Sequence[Any], ids: Sequence[str] | None, now: float
    ) -> None:
        for channel in self._channels:
            channel.add(lineage, self._input, keys, values, ids, now)

    def push_arrays(self, lineage: Lineage, batch: ArrayBatch, ids: Sequence[str] | None, now: float) -> None:
        self._send(range(len(self._channels)), lineage, batch, ids, now)


class OwnRoute(Route):
    """A grouping of the user's own: asked row by row."""

    def push(
        self, lineage: Lineage, keys: Sequence[Any], values: Sequence[Any], ids: Sequence[str] | None, now: float
    ) -> None:
        for channel, chosen_rows in zip(self._channels, self._choose(keys, values)):
            if chosen_rows:
                channel.add(
                    lineage,
                    self._input,
                    [keys[i] for i in chosen_rows],
                    [values[i] for i in chosen_rows],
                    [ids[i] for i in chosen_rows] if ids is not None else None,
                    now,
                )

    def push_arrays(self, lineage: Lineage, batch: ArrayBatch, ids: Sequence[str] | None, now: float) -> None:
        for number, chosen in enumerate(self._choose(*batch.rows)):
            if chosen:
                part, part_ids = batch.picked(chosen, ids)
                self._send((number,), lineage, part, part_ids, now)

    def _choose(self, keys: Sequence[Any], values: Sequence[Any]) -> list[list[int]]:
        """Places of the rows for each channel."""
        channels = self._channels
        count, choose = len(channels), self._edge.grouping.choose
        rows: list[list[int]] = [[] for _ in channels]
        for i, (key, value) in enumerate(zip(keys, values)):
            try:
                chosen = choose(key, value, count)
                numbers = tuple(chosen) if isinstance(chosen, Iterable) else (chosen,)
            except Exception as error:
                raise UserError(
                    f"unit {self._unit!r}, {self._edge.grouping!r}.choose on the way to {self._edge.target!r}, key {key!r}: "
                    f"{described(error)}"
                ) from error
            for number in numbers:
                if not hasattr(number, "__index__") or not 0 <= index(number) < count:  # numpy's whole numbers are some
                    raise TopologyError(
                        f"unit {self._unit!r}: {self._edge.grouping!r}.choose gave {number!r} for key {key!r}; it must give "
                        f"a number from 0 to {count - 1}, or several of them"
                    )
                rows[index(number)].append(i)
        return rows
