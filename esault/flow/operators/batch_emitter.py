"""The `emit_batch` and `emit_columns` of a bolt: rows go to the streams' columns, arrays stand between them as blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from esault.errors import PayloadError
from esault.flow.channel.array_batch import ArrayBatch
from esault.flow.delivery.roots import Payload
from esault.flow.operators.call_emitter import CallEmitter
from esault.flow.operators.emitter import Emitter
from esault.messages.settings import Settings
from esault.payload.codec import Codec
from esault.payload.column import checked, is_array
from esault.payload.column_wire import wired
from esault.topology.plan import UnitPlan

__all__ = ["BatchEmitter", "emitter"]


class _Block(NamedTuple):
    #: how many rows of the stream stand before it
    at: int
    batch: ArrayBatch
    ids: list[str]


class BatchEmitter(Emitter):
    """The streams of a BatchBolt or a spout."""

    def __init__(self, unit: str, streams: Iterable[str], checked: int, watch: bool, codec: Codec) -> None:
        super().__init__(unit, streams, checked, watch, codec)
        self._watched_arrays: list[tuple[Any, bytes]] = []

    # emitting ----------------------------------------------------------------------------------

    def batch_function(self) -> Callable[..., None]:
        """`emit_batch(self, rows, stream=None)` for a BatchBolt's class."""
        emitter = self

        def emit_batch(self: Any, rows: Sequence[tuple[Any, Any]], stream: str | None = None) -> None:
            out = emitter.stream(stream or "")
            if not emitter.trusted:
                for key, value in rows:
                    emitter.check(key, value)
            if rows:
                keys, values = zip(*rows)
                out.keys.extend(keys)
                out.values.extend(values)

        return emit_batch

    def columns_function(self) -> Callable[..., None]:
        """`emit_columns(self, keys, values, stream=None)` for a BatchBolt's class."""
        emitter = self

        def emit_columns(self: Any, keys: Any, values: Any, stream: str | None = None) -> None:
            out = emitter.stream(stream or "")
            keys, values = emitter.columns(keys, values)
            if is_array(keys) or is_array(values):
                if len(keys):
                    emitter.arrays.setdefault(out.stream, []).append(
                        _Block(len(out.keys), ArrayBatch(keys, values), [])
                    )
            else:
                out.keys.extend(keys)
                out.values.extend(values)

        return emit_columns

    def columns(self, keys: Any, values: Any) -> tuple[Any, Any]:
        """Both columns as they can be kept, no list of the user's among them. Raises PayloadError."""
        try:
            values = checked(values, "values")
            keys = (None,) * len(values) if keys is None else checked(keys, "keys")
        except PayloadError as error:
            raise PayloadError(f"unit {self._unit!r} emitted columns: {error}") from None
        if len(keys) != len(values):
            raise PayloadError(
                f"unit {self._unit!r} emitted columns of two lengths: {len(keys)} keys and {len(values)} values; "
                "give each tuple one of each, or None for keys"
            )
        array_keys, array_values = is_array(keys), is_array(values)
        if not self.trusted:
            if not (array_keys and array_values):
                for key, value in zip(
                    [None] * len(keys) if array_keys else keys, [None] * len(values) if array_values else values
                ):
                    self.check(key, value)
            if self._watching:
                self._watched_arrays += [(c, self._codec.pack(wired(c))) for c in (keys, values) if is_array(c)]
        return keys if array_keys else tuple(keys), values if array_values else tuple(values)

    def check_unchanged(self) -> None:
        """Find values and arrays that were changed after they were emitted. Raises PayloadError."""
        super().check_unchanged()
        for column, packed in self._watched_arrays:
            if self._codec.pack(wired(column)) != packed:
                raise PayloadError(
                    f"unit {self._unit!r} changed an array of type {type(column).__name__} after it had emitted it; emit a "
                    "copy (.copy()), or work on one"
                )
        del self._watched_arrays[:-64]

    # what was emitted --------------------------------------------------------------------------

    def rows(self) -> int:
        return super().rows() + sum([len(block.batch) for blocks in self.arrays.values() for block in blocks])

    @property
    def only_column(self) -> None:
        """None: rows are elsewhere too."""
        return None

    def marks(self) -> list[int]:
        return super().marks() + [len(self.arrays.get(stream, ())) for stream in self.outs]

    def rewind(self, marks: Sequence[int]) -> None:
        super().rewind(marks)
        for stream, mark in zip(self.outs, marks[len(self.outs) :]):
            if stream in self.arrays:
                del self.arrays[stream][mark:]
                if not mark:
                    del self.arrays[stream]

    def name(self, marks: Sequence[int], parent: str) -> None:
        super().name(marks, parent)
        for (stream, out), rows, mark in zip(self.outs.items(), marks, marks[len(self.outs) :]):
            count = len(out.keys) - rows
            for block in self.arrays.get(stream, ())[mark:]:
                end = count + len(block.batch)
                block.ids.extend([f"{parent}{out.tag}{i}" for i in range(count, end)])
                count = end

    def pop_arrays(self, with_ids: bool) -> Payload:
        """All that stands in streams that have arrays, in the order in which it was emitted; they are empty afterwards."""
        payload: Payload = []
        for stream, blocks in self.arrays.items():
            out, at = self.outs[stream], 0
            for block in (*blocks, None):
                to = len(out.keys) if block is None else block.at
                if to > at:
                    payload.append((stream, out.keys[at:to], out.values[at:to], out.ids[at:to] if with_ids else None))
                    at = to
                if block is not None:
                    payload.append((stream, block.batch.keys, block.batch.values, block.ids if with_ids else None))
            out.keys.clear()
            out.values.clear()
            out.ids.clear()
        self.arrays.clear()
        return payload


def emitter(plan: UnitPlan, settings: Settings, codec: Codec) -> Emitter:
    """The emitter that fits the plan of a unit."""
    kind = CallEmitter if plan.concurrency else Emitter if plan.kind == "bolt" and not plan.batch else BatchEmitter
    return kind(plan.name, plan.streams, settings.checked_emits, bool(settings.watch_values), codec)
