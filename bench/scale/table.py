"""The cost of the output table with many sub-units: look-ups on the way of rows, changes, and sending it."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

from bench.kit.measure import summary
from bench.workloads.loads import SEED
from esault import by_key
from esault.flow.channel.lineage import Lineage
from esault.flow.send.route import KeyRoute
from esault.messages.control import Table
from esault.routing.ring import position
from esault.routing.table import OutputTable
from esault.runtime.actors.signature import Signer
from esault.runtime.messages import Messages
from esault.topology.plan import Edge

__all__ = ["NANOSECONDS", "of_table", "per_item"]

#: as large as the default cache is not: what is measured uncached is never evicted in between
CACHE = 1 << 20
#: keys of one root, as a spout's default has them
ROOT = 128
KEYS = 20_000
#: seconds -> what a figure is in
NANOSECONDS, MICROSECONDS, MILLISECONDS = 1e9, 1e6, 1e3


def per_item(
    call: Callable[[Any], object],
    items: int,
    repeats: int,
    unit: float,
    fresh: Callable[[], Any] = lambda: None,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Time of `call(fresh())` for each of its `items`: median, least and most of some repeats; making `fresh` is not counted."""
    times = []
    for _ in range(repeats):
        given = fresh()
        begun = clock()
        call(given)
        times.append((clock() - begun) * unit / items)
    return summary(times)


class _Nowhere:
    """A channel that takes rows and counts them."""

    def __init__(self) -> None:
        self.rows = 0

    def add(self, lineage: Any, input: int, keys: Sequence[Any], values: Any, ids: Any, now: float) -> None:
        self.rows += len(keys)


def _route(table: OutputTable) -> KeyRoute:
    route = KeyRoute("bench", Edge("target", 0, by_key()), CACHE)
    channels: Any = {owner: _Nowhere() for owner in table.owners()}
    route.install(table, channels)
    return route


def _message(table: OutputTable) -> Messages:
    """The table as its senders get it, in their message."""
    version, pairs = table.snapshot()
    folder = "ipc:///tmp/esault-1000/20260101-000000-0123456789ab"
    peers = {owner: (f"{folder}/{owner}.data", f"{folder}/{owner}.express", 7) for owner in table.owners()}
    return Messages((Table("target", version, pairs, peers),))


def of_table(sub_units: int, repeats: int) -> dict[str, Any]:
    """All figures of a table with so many sub-units, after a random walk of splits and merges that keeps the number."""
    order = random.Random(SEED)
    table = OutputTable.even(list(range(1, sub_units + 1)))
    keys = [f"key-{i}" for i in range(KEYS)]
    places = [position(key) for key in keys]
    roots = [[order.choice(keys) for _ in range(ROOT)] for _ in range(200)]
    values = [1] * ROOT
    gc.collect()
    gc.disable()  # as good as: in a process of a run what was built is frozen
    try:
        return {
            "sub_units": sub_units,
            **_look_ups(table, keys, places, roots, repeats),
            "route_row_ns": per_item(
                lambda route: [route.push(Lineage((1, 1, 1), 0.0), root, values, None, 0.0) for root in roots],
                ROOT * len(roots),
                repeats,
                NANOSECONDS,
                lambda: _warm(_route(table), keys),
            ),
            **_changes(table, order, repeats),
            **_journey(table, repeats),
        }
    finally:
        gc.enable()


def _look_ups(
    table: OutputTable, keys: list[str], places: list[int], roots: list[list[str]], repeats: int
) -> dict[str, Any]:
    def cached(cache: Any) -> None:
        for root in roots:
            list(map(cache.__getitem__, root))

    owner = table.owner
    return {
        # what KeyRoute.push does with a root's keys
        "cached_ns": per_item(
            cached, ROOT * len(roots), repeats, NANOSECONDS, lambda: _warm(_route(table), keys)._cache
        ),
        "uncached_ns": per_item(
            lambda cache: list(map(cache.__getitem__, keys)),
            len(keys),
            repeats,
            NANOSECONDS,
            lambda: _route(table)._cache,
        ),
        "of_which_hash_ns": per_item(lambda _: [position(key) for key in keys], len(keys), repeats, NANOSECONDS),
        # what control asks
        "table_owner_ns": per_item(lambda _: [owner(place) for place in places], len(keys), repeats, NANOSECONDS),
    }


def _warm(route: KeyRoute, keys: list[str]) -> KeyRoute:
    list(map(route._cache.__getitem__, keys))
    return route


def _changes(table: OutputTable, order: random.Random, repeats: int) -> dict[str, Any]:
    starts = [low for low, _, _ in table.intervals()]
    chosen = [order.choice(starts) for _ in range(200)]
    ends = {low: high for low, high, _ in table.intervals()}
    new = len(starts) + 1

    def split(of: OutputTable) -> None:
        for start in dict.fromkeys(chosen):
            of.split(start, new)

    def merge(of: OutputTable) -> None:
        for start in dict.fromkeys(chosen):
            of.merge_left(start // 2 + ends[start] // 2 + 1)

    def halved() -> OutputTable:
        copy = table.copy()
        split(copy)
        return copy

    times = len(set(chosen))
    return {
        "split_us": per_item(split, times, repeats, MICROSECONDS, table.copy),
        "merge_us": per_item(merge, times, repeats, MICROSECONDS, halved),
        # a change is prepared on a copy
        "copy_ms": per_item(lambda _: table.copy(), 1, repeats, MILLISECONDS),
    }


def _journey(table: OutputTable, repeats: int) -> dict[str, Any]:
    """From the unit to one sender: packed and signed, checked and unpacked, installed."""
    signer = Signer(b"0123456789abcdef")
    packed = signer.dumps(_message(table))
    channels: Any = {owner: _Nowhere() for owner in table.owners()}
    route = KeyRoute("bench", Edge("target", 0, by_key()), CACHE)
    return {
        "message_bytes": len(packed),
        "pack_ms": per_item(lambda _: signer.dumps(_message(table)), 1, repeats, MILLISECONDS),
        "unpack_ms": per_item(lambda _: signer.loads(packed), 1, repeats, MILLISECONDS),
        "install_ms": per_item(
            lambda _: route.install(OutputTable.from_snapshot(table.snapshot()), channels), 1, repeats, MILLISECONDS
        ),
    }
