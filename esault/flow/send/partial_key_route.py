"""The route of `partial_key`: a key has two elements, which share its tuples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from esault.errors import PayloadError
from esault.flow.channel.array_batch import ArrayBatch
from esault.flow.channel.channel import OutChannel
from esault.flow.channel.lineage import Lineage
from esault.flow.channel.refused_key import refused_keys
from esault.flow.send.route import KeyRoute
from esault.routing.many_keys import are_keys
from esault.routing.table import OutputTable
from esault.topology.plan import Edge

__all__ = ["PartialKeyRoute"]


class PartialKeyRoute(KeyRoute):
    """`partial_key`: the one of the key's two elements whose sub-unit got fewer rows from here so far.

    The element is named (key, "0") or (key, "1") on the wire; where both live in one sub-unit they take turns.
    """

    def __init__(self, unit: str, edge: Edge, cache_size: int) -> None:
        super().__init__(unit, edge, cache_size)
        self._sent: list[int] = []
        self._turn = 0

    def install(self, table: OutputTable, channels: Mapping[int, OutChannel]) -> None:
        super().install(table, channels)
        self._sent = [0] * len(self._channels)

    def restart(self, turn: int) -> None:
        self._turn = turn & 1
        self._sent = [turn >> number % 32 & 1 for number in range(len(self._channels))]

    def push(
        self, lineage: Lineage, keys: Sequence[Any], values: Sequence[Any], ids: Sequence[str] | None, now: float
    ) -> None:
        numbers, halves = self._choose(keys)
        self._spread(numbers, lineage, halves, values, ids, now)

    def push_arrays(self, lineage: Lineage, batch: ArrayBatch, ids: Sequence[str] | None, now: float) -> None:
        numbers, halves = self._choose(batch.rows[0])
        for number, part, part_ids in ArrayBatch(halves, batch.values).divided(numbers, ids):
            self._send((number,), lineage, part, part_ids, now)

    def _choose(self, keys: Sequence[Any]) -> tuple[list[int], list[Any]]:
        """For each key a channel's number, and the name of the element there."""
        if not are_keys(keys):
            raise refused_keys(self._unit, keys)
        cache, sent, turn = self._cache, self._sent, self._turn
        numbers: list[int] = []
        halves: list[Any] = []
        for key in keys:
            zero, one = (key, "0"), (key, "1")
            try:
                first, second = cache[zero], cache[one]
            except PayloadError as error:
                raise refused_keys(self._unit, keys, str(error)) from None
            if first == second:
                turn ^= 1
                number, half = first, one if turn else zero
            elif sent[first] <= sent[second]:
                number, half = first, zero
            else:
                number, half = second, one
            sent[number] += 1
            numbers.append(number)
            halves.append(half)
        self._turn = turn
        return numbers, halves
