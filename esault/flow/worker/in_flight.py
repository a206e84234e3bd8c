"""Rows in flight: those that wait in an inbox when the cut of an unaligned checkpoint is made. They belong to it, like state.

A piece holds one item for each batch: its input and the stream that it came by, and the rest of the batch, packed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import Any

from esault.errors import CheckpointError, FrameError, PayloadError
from esault.flow.channel.frame import Batch, batch_of
from esault.flow.checkpoint.snapshot import StateStore
from esault.flow.handover.divide import Entry, in_rows, wired_batch
from esault.messages.checkpoint import Piece, Restore
from esault.payload.codec import Codec
from esault.payload.schema import Evolution, Schema
from esault.routing.ring import position
from esault.topology.plan import UnitPlan

__all__ = ["InFlight", "may_wait", "write"]


def may_wait(plan: UnitPlan) -> bool:
    """Return whether rows of all inputs have a place after a change of parallelism: by key, in the one object, or anywhere."""
    if plan.replicas > 1 or plan.merger:
        return False
    if plan.objects == "unit":
        return True
    return all(each.grouping.promises.keyed or each.grouping.promises.anywhere for each in plan.inputs)


def write(
    inbox: Iterable[Entry],
    plan: UnitPlan,
    codec: Codec,
    state_store: StateStore,
    number: int,
    incarnation: int,
    schema: Schema,
) -> Piece | Future[Piece]:
    """Write what waits; it is durable, or will be when the future is done. Raises CheckpointError, as does that."""
    file = state_store.create(number, incarnation, False, in_flight=True)
    for _, batch, _ in inbox:
        wired = wired_batch(batch)
        stream = plan.inputs[batch.input].stream
        file.add((batch.input, stream), codec.pack((wired.due, wired.keys, wired.values, wired.ids)))
    return file.finish(schema)


class InFlight:
    """The rows in flight of a checkpoint that one sub-unit goes on with, as batches of one root of its own."""

    def __init__(
        self,
        plan: UnitPlan,
        part: int,
        parts: int,
        restore: Restore,
        state_store: StateStore,
        codec: Codec,
        root: tuple[int, int, int],
        random64: Callable[[], int],
        now: float,
    ) -> None:
        """`part` of `parts` sub-units; `root` is not registered yet. Raises CheckpointError for what cannot be read."""
        self._plan = plan
        self._restore = restore
        self.entries: list[Entry] = []
        #: the ids of all batches, XORed together
        self.ids = 0
        self.rows = 0
        for number, piece in enumerate(restore.in_flight):
            for batch in self._read(piece, state_store, codec, root):
                mine = self._mine(batch, number % parts == part)
                if mine is not None:
                    id = random64()
                    self.ids ^= id
                    self.rows += len(mine.keys)
                    self.entries.append(Entry(now, mine._replace(id=id)))

    def _read(self, piece: Piece, state_store: StateStore, codec: Codec, root: tuple[int, int, int]) -> Iterator[Batch]:
        evolution = Evolution(state_store.schema(piece))
        evolves = evolution.needed(None)
        for (number, stream), packed in state_store.read(piece):
            try:
                due, keys, values, ids = codec.unpack(packed or b"")
                if evolves and type(values) is tuple:
                    values = tuple([evolution.read(codec.pack_value(value)) for value in values])
                yield batch_of((root, 0, self._input(number, stream), keys, values, due, ids))
            except (FrameError, PayloadError, ValueError) as error:
                raise CheckpointError(
                    f"unit {self._plan.name!r}: rows in flight cannot be restored: {error}; run the code that wrote them, and pause "
                    "it when less waits, or begin anew with --restart"
                ) from error

    def _input(self, number: int, stream: str) -> int:
        """The input by the stream that it had; the same one where units were renamed."""
        streams = [each.stream for each in self._plan.inputs]
        if number < len(streams) and streams[number] == stream:
            return number
        if stream in streams:
            return streams.index(stream)
        if number < len(streams):
            return number
        raise FrameError(f"there is no input {stream!r} any more")

    def _mine(self, batch: Batch, rest: bool) -> Batch | None:
        """The rows that belong here; `rest`: those that may be anywhere do."""
        if self._plan.objects == "unit":
            return batch
        if not self._plan.inputs[batch.input].grouping.promises.keyed:
            return batch if rest else None
        batch = in_rows(batch)
        chosen = [i for i, key in enumerate(batch.keys) if self._owns(key)]
        if len(chosen) == len(batch.keys):
            return batch
        if not chosen:
            return None
        return batch._replace(
            keys=tuple([batch.keys[i] for i in chosen]),
            values=tuple([batch.values[i] for i in chosen]),
            ids=None if batch.ids is None else tuple([batch.ids[i] for i in chosen]),
        )

    def _owns(self, key: Any) -> bool:
        place = position(key)
        return any(low <= place <= high for low, high in self._restore.ranges)
