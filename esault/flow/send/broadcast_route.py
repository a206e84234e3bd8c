"""The route to all sub-units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from esault.flow.channel.array_batch import ArrayBatch
from esault.flow.channel.lineage import Lineage
from esault.flow.send.route import Route

__all__ = ["BroadcastRoute"]


class BroadcastRoute(Route):
    """`broadcast` and `single`: every sub-unit there is."""

    def push(
        self, lineage: Lineage, keys: Sequence[Any], values: Sequence[Any], ids: Sequence[str] | None, now: float
    ) -> None:
        for channel in self._channels:
            channel.add(lineage, self._input, keys, values, ids, now)

    def push_arrays(self, lineage: Lineage, batch: ArrayBatch, ids: Sequence[str] | None, now: float) -> None:
        self._send(range(len(self._channels)), lineage, batch, ids, now)
