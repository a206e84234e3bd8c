"""Aggregates are combined before they travel: of all rows of a batch, by Arrow where the kinds of values allow that.

Spark itself could do it only in a streaming aggregation, which keeps state and emits by rules of its own
(`docs/explanation/spark-engine.md` has the figures). So a process of Spark's does what its partial aggregation would: it reads keys, times and values
into columns as they come, and has Arrow group them once, behind the batch. What comes of that are the very `Partial` values that
`Combine` makes row by row, and the unit merges them as it does those.

Arrow's numbers are not Python's. Where they could differ (ints of more than 64 bits, sums that might be, -0.0, NaN, bools, None,
Decimals, types that vary within 2048 rows), rows go the other way, by `Combine`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from operator import countOf
from typing import TYPE_CHECKING, Any

from esault.flow.channel.array_batch import ArrayBatch
from esault.flow.channel.lineage import Lineage
from esault.flow.send.route import Route
from esault.payload.column import plain
from esault.spark.engine.exact_numbers import ADDENDS, known_numbers, numbers_of
from esault.topology.aggregates.aggregate import Aggregate, Count, Extreme, Mean, Sum
from esault.topology.aggregates.aggregated import FEW, Combine
from esault.topology.field import column_of, field_name
from esault.topology.plan import Outlet
from esault.topology.window import SlidingWindow, TumblingWindow

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Combining", "combines_of", "is_native", "without_combine"]

#: rows that are combined at once, at most
MOST_ROWS = ADDENDS
#: windows that rows which come together may go into
MOST_WINDOWS = 256
#: bounds of windows that rows are compared with by Arrow, and ints up to which each is a float, too
FEW_EDGES, EXACT = 16, 1 << 53


def is_native(combine: Combine) -> bool:
    """Return whether Arrow has all of these aggregates, and windows of this kind."""
    kinds = {type(of) for of in combine.aggregates}
    return type(combine.kind) in (TumblingWindow, SlidingWindow) and kinds <= {Count, Sum, Mean, Extreme}


def combines_of(outlet: Outlet) -> Iterator[tuple[tuple[str, int], Combine]]:
    """(target, input) of each edge that has a step "combine" before it, with its function."""
    for each in outlet.walk():
        if each.steps and each.steps[-1].kind == "combine":
            for edge in each.edges:
                yield (edge.target, edge.input), each.steps[-1].function  # type: ignore[misc]


def without_combine(outlet: Outlet) -> Outlet:
    """The outlet without steps "combine": routes do what they say."""
    steps = tuple(step for step in outlet.steps if step.kind != "combine")
    return replace(outlet, steps=steps, branches=tuple(map(without_combine, outlet.branches)))


@dataclass
class _Column:
    """Parts of values, as one aggregate or several ask for them."""

    aggregate: Aggregate
    #: sums are asked for
    summed: bool
    #: numbers of 64 bits, int or float, a list for each batch that came
    arrays: list[pa.Array] = field(default_factory=list)


class Combining:
    """A route to a unit of aggregates by name."""

    def __init__(self, route: Route, combine: Combine) -> None:
        self._route = route
        self._combine = combine
        self._native = is_native(combine)
        #: aggregates of the same part of values share a column
        self._columns: dict[Any, _Column] = {}
        for of in combine.aggregates if self._native else ():
            if not isinstance(of, Count):
                column = self._columns.setdefault(of.of, _Column(of, False))
                column.summed = column.summed or not isinstance(of, Extreme)
        #: times and parts of values are fields by name
        self._named = field_name(combine.time) is not None and all(type(of) is str for of in self._columns)
        self._forget()
        #: rows of this batch do not get fewer
        self._given_up = False

    def _forget(self) -> None:
        #: what stands for a key -> its number
        self._codes: dict[Any, int] = defaultdict(count().__next__)
        #: keys that something else stands for
        self._keys: dict[Any, Any] = {}
        #: numbers of windows -> what stands for them
        self._places: dict[range, int] = defaultdict(count().__next__)
        self._lineage: Lineage | None = None
        self._rows = 0
        self._types: tuple[Any, ...] = ()
        self._held: dict[str, list[pa.Array]] = {"key": [], "place": [], "at": [], "id": []}
        for column in self._columns.values():
            column.arrays = []

    def restart(self, turn: int) -> None:
        """A batch begins: what is combined follows from it alone."""
        self._route.restart(turn)
        self._combine.restart()
        self._forget()
        self._given_up = False

    def push_arrays(self, lineage: Lineage, batch: ArrayBatch, ids: Sequence[str] | None, now: float) -> None:
        """As `push`; columns of Arrow's are not made rows of, where keys, times and parts of values are such."""
        if not (self._native and not self._given_up and self._taken_arrays(lineage, batch, ids, now)):
            self.push(lineage, *batch.rows, ids, now)

    def _taken_arrays(self, lineage: Lineage, batch: ArrayBatch, ids: Sequence[str] | None, now: float) -> bool:
        """Take columns as they are; False if they cannot be."""
        if not self._named or getattr(batch.keys, "null_count", 0) > 0:
            return False
        at = known_numbers(column_of(field_name(self._combine.time), batch.values))
        found = [(column_of(of, batch.values), each.summed) for of, each in self._columns.items()]
        return self._kept(lineage, batch.keys, at, [known_numbers(*each) for each in found], ids, now)

    def push(
        self, lineage: Lineage, keys: Sequence[Any], values: Sequence[Any], ids: Sequence[str] | None, now: float
    ) -> None:
        """Keep rows until `flush`, or send them on."""
        if self._native and not self._given_up and self._taken(lineage, keys, values, ids, now):
            return
        self.flush(now)
        combined = self._combine.as_they_are if self._given_up else self._combine
        self._route.push(lineage, *combined(keys, values, ids), now)

    def _taken(
        self, lineage: Lineage, keys: Sequence[Any], values: Sequence[Any], ids: Sequence[str] | None, now: float
    ) -> bool:
        """Read rows into columns; False if they cannot be."""
        if len(keys) > MOST_ROWS:
            return False
        try:
            at = numbers_of(list(map(self._combine.time, values)))
            parts = [numbers_of(list(map(each.aggregate.part, values)), each.summed) for each in self._columns.values()]
        except Exception:  # of the user's functions: the unit meets it again, at the row that it is about
            return False
        return self._kept(lineage, keys, at, parts, ids, now)

    def _kept(
        self,
        lineage: Lineage,
        keys: Any,
        at: pa.Array | None,
        parts: list[pa.Array | None],
        ids: Sequence[str] | None,
        now: float,
    ) -> bool:
        """Keep rows as keys, times and parts of values until they are combined; False if they cannot be."""
        if at is None or any(part is None for part in parts) or len(keys) > MOST_ROWS:
            return False
        if self._rows + len(keys) > MOST_ROWS:
            self.flush(now)
            if self._given_up:
                return False
        try:
            places = self._places_of(at)
        except Exception:  # an own kind of window
            return False
        if places is None:
            return False
        import pyarrow as pa

        types = (at.type, ids is None, *[part.type for part in parts if part is not None])
        if types != self._types:
            if self._rows:
                self.flush(now)
                places = self._places_of(at)  # its numbers begin anew
                assert places is not None
            self._types = types
        if self._lineage is None:
            self._lineage = lineage
        held = self._held
        held["key"].append(self._codes_of(keys))
        held["place"].append(places)
        held["at"].append(at)
        if ids is not None:
            held["id"].append(pa.array(ids, pa.string()))
        for each, part in zip(self._columns.values(), parts):
            each.arrays.append(part)
        self._rows += len(keys)
        return True

    def _codes_of(self, keys: Any) -> pa.Array:
        import pyarrow as pa

        if isinstance(keys, pa.Array):
            each = keys if isinstance(keys, pa.DictionaryArray) else keys.dictionary_encode()
            return self._codes_of(each.dictionary.to_pylist()).take(each.indices)
        if not isinstance(keys, (list, tuple)):
            keys = plain(keys)
        if countOf(map(type, keys), str) == len(keys):
            return pa.array(list(map(self._codes.__getitem__, keys)), pa.int32())
        # As in `Combine`: 1 is no True.
        names = [key if type(key) is str else (type(key), repr(key)) for key in keys]
        self._keys.update(zip(names, keys))
        return pa.array(list(map(self._codes.__getitem__, names)), pa.int32())

    def _places_of(self, at: pa.Array) -> pa.Array | None:
        """Return what stands for the windows of each row; None if it takes too long to tell."""
        import pyarrow as pa
        import pyarrow.compute as pc

        kind, place_of = self._combine.kind, self._places.__getitem__
        bounds = pc.min_max(at)
        first, last = bounds["min"].as_py(), bounds["max"].as_py()
        begin, end = kind.indices(first), kind.indices(last)
        if begin == end:
            return pa.repeat(pa.scalar(place_of(begin), pa.int32()), len(at))
        if end.stop - begin.start > MOST_WINDOWS:
            return None
        # Between two bounds of windows all times are in the same ones.
        edges = sorted({t for k in range(begin.start, end.stop) for t in kind.window(k) if first < t <= last})
        places = [place_of(kind.indices(t)) for t in (first, *edges)]
        if (
            0 < len(edges) <= FEW_EDGES and first >= -EXACT and last <= EXACT
        ):  # compared as floats they are what they are
            passed = [pc.greater_equal(at.cast(pa.float64()), pa.scalar(float(edge))).cast(pa.int8()) for edge in edges]
            number = passed[0]
            for more in passed[1:]:
                number = pc.add(number, more)
            return pa.array(places, pa.int32()).take(number)
        return pa.array([places[bisect_right(edges, t)] for t in at.to_pylist()], pa.int32())

    def flush(self, now: float = 0.0) -> None:
        """Send what was kept, combined."""
        if not self._rows:
            return
        import pyarrow as pa

        with_ids = bool(self._held["id"])
        columns = {name: pa.chunked_array(arrays) for name, arrays in self._held.items() if arrays}
        asked: dict[Any, None] = {("at", "first"): None, ((), "count_all"): None}
        if with_ids:
            asked["id", "first"] = None
        where = {of: f"of{i}" for i, of in enumerate(self._columns)}
        columns |= {where[of]: pa.chunked_array(column.arrays) for of, column in self._columns.items()}
        for each in self._combine.aggregates:
            if not isinstance(each, Count):
                asked[where[each.of], each.kind if isinstance(each, Extreme) else "sum"] = None
        table = pa.table(columns)
        # By one thread in the order of the rows, as sums of floats are elsewhere, and the same each time.
        grouped = table.group_by(["key", "place"], use_threads=False).aggregate(list(asked))
        found = {name: grouped.column(name).to_pylist() for name in set(grouped.column_names) - {"place"}}
        known = []
        for each in self._combine.aggregates:
            if isinstance(each, Count):
                known.append(found["count_all"])
            elif isinstance(each, Mean):
                known.append(list(zip(found[f"{where[each.of]}_sum"], found["count_all"])))
            else:
                known.append(found[f"{where[each.of]}_{each.kind}"])
        stands_for, other = list(self._codes), self._keys
        keys = [other.get(name, name) for name in map(stands_for.__getitem__, found["key"])]
        values = [(at, partial, None) for at, partial in zip(found["at_first"], zip(*known))]
        lineage, self._given_up = self._lineage, len(keys) > FEW * self._rows
        self._forget()
        assert lineage is not None
        self._route.push(lineage, keys, values, found.get("id_first"), now)
