"""S3: three queries over pipelines that run out of order give what one pipeline gives, tuple for tuple.

What depends on one tuple only (splitting, mapping, filtering) runs in the pipelines; the time-stamp map puts its results in order;
what depends on the order or on state (counting, averaging, joining) follows. TM and WC on seeded data; Q3 on rows of TPC-H's form,
for which any rows of its generator can be given.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from bench.policies.orientstream.stops import STEP_MS, WINDOW_MS, StoppingRun
from bench.workloads.loads import sentences
from esault.errors import UsageError

__all__ = ["Q3", "QUERIES", "TimestampMap", "compare", "fixes", "haversine", "orders_of", "speed"]

V = TypeVar("V")
#: metres
EARTH = 6_371_000.0
DAY, SEGMENT = "1995-03-15", "BUILDING"


def haversine(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Metres between two (latitude, longitude) in degrees."""
    (lat1, lon1), (lat2, lon2) = ([math.radians(d) for d in each] for each in (a, b))
    h = math.sin((lat2 - lat1) / 2) ** 2 + math.cos(lat1) * math.cos(lat2) * math.sin((lon2 - lon1) / 2) ** 2
    return 2 * EARTH * math.asin(math.sqrt(h))


def speed(a: tuple[float, float], b: tuple[float, float], seconds: float) -> float:
    """Kilometres an hour."""
    return 3.6 * haversine(a, b) / seconds


# TM: a fix becomes (road, device, time, place); then the mean speed of a road's devices, at each fix that gives one.


def fixes(n: int, seed: int) -> list[tuple[int, float, float, float]]:
    """(device, seconds, latitude, longitude) of 200 devices on 20 x 20 roads, in order of time."""
    order = random.Random(seed)
    base = [order.uniform(20, 80) for _ in range(40)]
    found = []
    for device in range(200):
        road, at, along = order.randrange(40), 0.0, order.uniform(0, 2000)
        pace = base[road] * order.uniform(0.8, 1.2)
        for _ in range(n // 200 + 1):
            gap = order.uniform(1, 5)
            at += gap
            along += (pace + order.gauss(0, 3)) / 3.6 * gap
            north, east = (along, 100.0 * (road % 20)) if road < 20 else (100.0 * (road % 20), along)
            lat = 39.9 + (north + order.gauss(0, 10)) / 111_195
            lon = 116.4 + (east + order.gauss(0, 10)) / 85_305
            found.append((device, at, lat, lon))
    return sorted(found, key=lambda fix: fix[1])[:n]


def _mapped(fix: tuple[int, float, float, float]) -> list[Any]:
    device, at, lat, lon = fix
    return [((round(lat, 3), round(lon, 3)), device, at, (lat, lon))]


def _speeds() -> Callable[[Any], list[Any]]:
    last: dict[int, tuple[float, tuple[float, float]]] = {}
    sums: dict[Any, list[float]] = defaultdict(lambda: [0.0, 0])

    def on(value: Any) -> list[Any]:
        road, device, at, place = value
        before, last[device] = last.get(device), (at, place)
        if before is None or at == before[0]:
            return []
        sums[road][0] += speed(before[1], place, at - before[0])
        sums[road][1] += 1
        return [(road, sums[road][0] / sums[road][1])]

    return on


# WC: a sentence becomes words; then the count of each so far.


def _counts() -> Callable[[Any], list[Any]]:
    counts: dict[str, int] = defaultdict(int)

    def on(words: Any) -> list[Any]:
        out = []
        for word in words:
            counts[word] += 1
            out.append((word, counts[word]))
        return out

    return on


# Q3: rows are filtered; then joined as they come, each with what has come of the others.


@dataclass
class Q3:
    """TPC-H's third query over streams of its three tables."""

    customers: set[int] = field(default_factory=set)
    #: order -> (customer, date, priority)
    orders: dict[int, tuple[int, str, int]] = field(default_factory=dict)
    of_customer: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    #: of lines whose order is not joined yet: order -> revenues
    lines: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    #: (order, date, priority) -> revenue in ten-thousandths
    groups: dict[tuple[int, str, int], int] = field(default_factory=lambda: defaultdict(int))
    #: rows of customer x orders, and with lineitem
    joined: list[int] = field(default_factory=lambda: [0, 0])

    @staticmethod
    def passes(row: tuple[Any, ...]) -> bool:
        """The three filters. Rows: ("c", key, segment), ("o", key, customer, date, priority), ("l", order, cents, percent off, date)."""
        if row[0] == "c":
            return bool(row[2] == SEGMENT)
        return bool(row[3] < DAY) if row[0] == "o" else bool(row[4] > DAY)

    def on(self, row: tuple[Any, ...]) -> list[Any]:
        """Return what this row adds to the join: (order, revenue so far)."""
        if row[0] == "c":
            self.customers.add(row[1])
            return [out for order in self.of_customer[row[1]] for out in self._order(order)]
        if row[0] == "o":
            _, key, customer, date, priority = row
            self.orders[key] = (customer, date, priority)
            self.of_customer[customer].append(key)
            return self._order(key) if customer in self.customers else []
        _, key, cents, off, _ = row
        revenue = cents * (100 - off)
        if key in self.orders and self.orders[key][0] in self.customers:
            return [self._line(key, revenue)]
        self.lines[key].append(revenue)
        return []

    def _order(self, key: int) -> list[Any]:
        self.joined[0] += 1
        return [self._line(key, revenue) for revenue in self.lines.pop(key, ())]

    def _line(self, key: int, revenue: int) -> tuple[int, int]:
        self.joined[1] += 1
        _, date, priority = self.orders[key]
        self.groups[key, date, priority] += revenue
        return key, self.groups[key, date, priority]

    def rows(self) -> list[tuple[int, int, str]]:
        """(order, revenue in ten-thousandths, date), largest revenue first, then by date."""
        return sorted(((k, v, d) for (k, d, _), v in self.groups.items()), key=lambda r: (-r[1], r[2]))


def orders_of(n: int, seed: int) -> list[tuple[Any, ...]]:
    """`n` rows of the three tables' form in the ratio 1 : 10 : 40, mixed."""
    order = random.Random(seed)
    date = lambda: f"1995-{order.randint(1, 6):02}-{order.randint(1, 28):02}"
    segments = (SEGMENT, "AUTOMOBILE", "FURNITURE", "HOUSEHOLD", "MACHINERY")
    customers = max(1, n // 51)
    found: list[tuple[Any, ...]] = [("c", i, order.choice(segments)) for i in range(customers)]
    found += [("o", i, order.randrange(customers), date(), 0) for i in range(10 * customers)]
    while len(found) < n:
        line = ("l", order.randrange(10 * customers), order.randint(90_000, 10_000_000), order.randint(0, 10), date())
        found.append(line)
    order.shuffle(found)
    return found


#: name -> (source rows, what a pipeline makes of one, what follows the map)
QUERIES: dict[str, tuple[Callable[[int, int], list[Any]], Callable[[Any], list[Any]], Callable[[], Any]]] = {
    "TM": (fixes, _mapped, _speeds),
    "WC": (sentences, lambda line: [line.split()], _counts),
    "Q3": (orders_of, lambda row: [row] if Q3.passes(row) else [], lambda: Q3().on),
}


def compare(query: str, run: StoppingRun, per_slice: int, seed: int) -> dict[str, Any]:
    """Let a query's rows go through in the order of that run, `per_slice` rows in a slice.

    Returns how many results there were, whether they are those of one pipeline in order of arrival, tuple for tuple, and whether
    they would have been without the map.
    """
    source, stateless, stateful = QUERIES[query]
    windows = 1 + max(window for window, _, _ in run.order)
    together = WINDOW_MS // STEP_MS
    rows = source(windows * together * per_slice, seed)
    mapped: TimestampMap[Any] = TimestampMap(WINDOW_MS, 2)
    ordered: list[Any] = []
    unordered: list[Any] = []
    by_window: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for window, i, pipeline in run.order:
        by_window[window].append((pipeline, i))
    for window, order in by_window.items():
        pipelines = sorted({pipeline for pipeline, _ in order})
        mapped.expect(window, len(pipelines))
        for at, (pipeline, i) in enumerate(order):
            first = (window * together + i) * per_slice
            for sequence in range(first, first + per_slice):
                for value in stateless(rows[sequence]):
                    unordered.append(value)
                    mapped.put((window * together + i) * STEP_MS, sequence, value)
            if at + 1 == len(order) or order[at + 1][0] != pipeline:
                ordered += [value for _, _, value in mapped.end(pipeline, window)]
    expected = _followed(stateful(), (value for row in rows for value in stateless(row)))
    return {
        "query": query,
        "rows": len(rows),
        "results": len(expected),
        "exact": _followed(stateful(), ordered) == expected,
        "exact without the map": _followed(stateful(), unordered) == expected,
    }


def _followed(on: Callable[[Any], Sequence[Any]], values: Iterable[Any]) -> list[Any]:
    return [result for value in values for result in on(value)]


class TimestampMap(Generic[V]):
    """Buckets of results by window of arrival: F(time) = (time // window) mod buckets.

    A bucket comes out when every pipeline has ended its window, sorted by time and sequence number.
    """

    def __init__(self, window_ms: int, buckets: int, pipelines: int = 1) -> None:
        """`pipelines`: how many must end a window for which `expect` says nothing. Raises UsageError for numbers below 1."""
        if min(window_ms, buckets, pipelines) < 1:
            raise UsageError(
                f"time-stamp map: window of {window_ms} ms, {buckets} buckets, {pipelines} pipelines: each must be 1 or more"
            )
        self._window = window_ms
        self._buckets: list[list[tuple[int, int, V]]] = [[] for _ in range(buckets)]
        self._pipelines = pipelines
        self._expected: dict[int, int] = {}
        self._ended: dict[int, set[int]] = {}
        self._next = 0

    def bucket(self, ms: int) -> int:
        """F: which bucket holds what came at this time."""
        return (ms // self._window) % len(self._buckets)

    def expect(self, window: int, pipelines: int) -> None:
        """Windows may differ in how many pipelines they go through."""
        self._expected[window] = pipelines

    def put(self, ms: int, sequence: int, value: V) -> None:
        """A result of what came at time `ms` with that sequence number.

        Raises BufferError when its window is further ahead than there are buckets (wait until `end` has given some out), and
        UsageError when its window has come out already.
        """
        window = ms // self._window
        if window >= self._next + len(self._buckets):
            raise BufferError(
                f"window {window} is too far ahead: {self._next} is not out, {len(self._buckets)} buckets"
            )
        if window < self._next:
            raise UsageError(f"window {window} is out already: a pipeline delivered after its end of window")
        self._buckets[self.bucket(ms)].append((ms, sequence, value))

    def end(self, pipeline: int, window: int) -> list[tuple[int, int, V]]:
        """The pipeline has delivered all of the window. Returns what may come out, as (time, sequence number, value)."""
        self._ended.setdefault(window, set()).add(pipeline)
        out: list[tuple[int, int, V]] = []
        while len(self._ended.get(self._next, ())) == self._expected.get(self._next, self._pipelines):
            self._ended.pop(self._next, None)
            self._expected.pop(self._next, None)
            at = self._next % len(self._buckets)
            out += sorted(self._buckets[at], key=lambda kept: kept[:2])
            self._buckets[at] = []
            self._next += 1
        return out
