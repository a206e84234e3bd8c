"""A BatchBolt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from esault.errors import PayloadError
from esault.flow.batch_emitter import BatchEmitter
from esault.flow.elements import maker
from esault.flow.emitter import Emitter
from esault.flow.operators.operator import STOPPING, Operator
from esault.flow.user_error import LetterBox, UserError
from esault.payload.codec import Codec
from esault.payload.column import plain
from esault.routing.ring import check_key
from esault.topology.bolt import BatchBolt, takes_columns
from esault.topology.context import Context
from esault.topology.plan import UnitPlan

__all__ = ["BatchOperator"]

#: entries of `keyed` that are looked at after the first batch
TRIED = 64


class BatchOperator(Operator):
    """A BatchBolt: the policy covers a batch, since the engine does not see its tuples."""

    def __init__(
        self, plan: UnitPlan, context: Context, emitter: Emitter, codec: Codec, letters: LetterBox, now: float
    ) -> None:
        super().__init__(plan, context, emitter, codec, letters, now)
        assert plan.factory is not None and isinstance(emitter, BatchEmitter)
        members = {
            "emit_batch": emitter.batch_function(),
            "emit_columns": emitter.columns_function(),
            "context": context,
        }
        make, _ = maker(plan.factory, members, BatchBolt)
        try:
            self.object = make()
            self.object.keyed = {}
            before = emitter.rows()
            self.object.open(context)
            if emitter.rows() != before:
                raise RuntimeError(
                    "emit_batch and emit_columns work in process_batch, process_columns, tick and finish, not in __init__ or open"
                )
        except STOPPING:
            raise
        except BaseException as error:
            raise self._fail(error, None, "open") from error
        cls = type(self.object)
        self.takes_arrays = takes_columns(cls)
        stream = "process_columns_stream" if self.takes_arrays else "process_batch_stream"
        self._by_stream = len(plan.inputs) > 1 and getattr(cls, stream) is not getattr(BatchBolt, stream)
        self._tried_state = False

    def run(self, input: int, keys: Sequence[Any], values: Sequence[Any], ids: Sequence[str] | None) -> None:
        if self.plan.objects == "partial_key":
            keys = [key[0] for key in keys]  # what an element is named by on the wire is no key of the user's
        marks = [] if ids is None else self.emitter.marks()
        batch, stream = self.object, self._streams[input]
        if self.takes_arrays:
            call = (
                (lambda: batch.process_columns_stream(stream, keys, values))
                if self._by_stream
                else (lambda: batch.process_columns(keys, values))
            )
            self._attempt(call, None, (keys, values), "process_columns")
        else:
            rows = list(zip(keys, values))
            call = (
                (lambda: batch.process_batch_stream(stream, rows))
                if self._by_stream
                else (lambda: batch.process_batch(rows))
            )
            self._attempt(call, None, rows, "process_batch")
        if ids is not None:
            # Rows out of a batch have no one source row: their ids are fresh, also at a replay.
            self.emitter.name(marks, f"{self.context.sub_unit}:b{self.ordinal}")
            self.ordinal += 1
        self._settle()
        if not self._tried_state and batch.keyed:
            self._tried_state = True
            self._try_state()

    def _survive(self, error: BaseException, key: Any, value: Any, hook: str) -> None:
        if hook == "process_columns":  # a letter is made of rows
            value = list(zip(*map(plain, value)))
        super()._survive(error, key, value, hook)

    def _try_state(self) -> None:
        """Whether what came first can be saved is found now, and not when it must be."""
        unit, cls = self.plan.name, type(self.object).__name__
        for key, state in islice(self.object.keyed.items(), TRIED):
            try:
                check_key(key)
            except PayloadError as error:
                raise UserError(f"unit {unit!r}: a key in {cls}.keyed cannot be moved or saved: {error}") from error
            try:
                self.codec.pack(state)
            except PayloadError as error:
                raise UserError(
                    f"unit {unit!r}: the state of key {key!r} in {cls}.keyed cannot be moved or saved: {error}"
                ) from error

    def ticking(self, now: float) -> Iterator[None]:
        self._outside_process(lambda: self.object.tick(now), None, "tick")
        yield

    def finishing(self) -> Iterator[None]:
        self._outside_process(self.object.finish, None, "finish")
        yield

    def close(self) -> None:
        self._close(self.object)

    def names(self) -> list[Any]:
        return list(self.object.keyed)

    def give(self, name: Any) -> bytes | None:
        try:
            value = self.object.keyed.pop(name)
        except KeyError:
            return None
        return self.codec.pack(value)

    def get(self, key: Any, state: bytes) -> None:
        self.object.keyed[key] = self.codec.unpack(state)

    def peek(self, name: Any) -> bytes | None:
        keyed = self.object.keyed
        return self.codec.pack(keyed[name]) if name in keyed else None

    @property
    def states(self) -> int:
        return len(self.object.keyed)
