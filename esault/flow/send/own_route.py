"""The route of a user's own grouping."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import index
from typing import Any

from esault.errors import TopologyError
from esault.flow.channel.array_batch import ArrayBatch
from esault.flow.channel.lineage import Lineage
from esault.flow.operators.user_error import UserError, described
from esault.flow.send.route import Route

__all__ = ["OwnRoute"]


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
