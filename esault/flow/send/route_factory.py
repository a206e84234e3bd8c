"""The route that fits an edge."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from esault.flow.send.partial_key_route import PartialKeyRoute
from esault.flow.send.route import BroadcastRoute, KeyRoute, OwnRoute, Route
from esault.flow.send.shuffle_route import RowShuffleRoute, ShuffleRoute
from esault.flow.send.split_key_route import SplitKeyRoute
from esault.topology.grouping import Broadcast, ByKey, Grouping, PartialKey, Shuffle, Single, SplitKey
from esault.topology.plan import Edge

__all__ = ["route"]

#: grouping -> its route; one that is not here is asked row by row
_ROUTES: Mapping[type[Grouping], Callable[[str, Edge, int], Route]] = {
    ByKey: KeyRoute,
    PartialKey: PartialKeyRoute,
    SplitKey: SplitKeyRoute,
    Shuffle: ShuffleRoute,
    Broadcast: BroadcastRoute,
    Single: BroadcastRoute,
}
#: the same where rows may have to go the same way again
_REPEATABLE: Mapping[type[Grouping], Callable[[str, Edge, int], Route]] = {
    **_ROUTES,
    SplitKey: partial(SplitKeyRoute, splits=False),
    Shuffle: RowShuffleRoute,
}


def route(unit: str, edge: Edge, cache_size: int, by_rows: bool = False) -> Route:
    """The route of this edge, out of this unit. `by_rows`: after `restart` the same rows in the same order go the same way."""
    return (_REPEATABLE if by_rows else _ROUTES).get(type(edge.grouping), OwnRoute)(unit, edge, cache_size)
