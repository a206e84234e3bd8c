"""A BatchBolt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from esault.flow.elements import maker
from esault.flow.emitter import Emitter
from esault.flow.operators.operator import STOPPING, Operator
from esault.flow.user_error import LetterBox
from esault.payload.codec import Codec
from esault.topology.bolt import BatchBolt
from esault.topology.context import Context
from esault.topology.plan import UnitPlan

__all__ = ["BatchOperator"]


class BatchOperator(Operator):
    """A BatchBolt: the policy covers a batch, since the engine does not see its tuples."""

    def __init__(
        self, plan: UnitPlan, context: Context, emitter: Emitter, codec: Codec, letters: LetterBox, now: float
    ) -> None:
        super().__init__(plan, context, emitter, codec, letters, now)
        assert plan.factory is not None
        members = {"emit_batch": emitter.batch_function(), "context": context}
        make, _ = maker(plan.factory, members, BatchBolt)
        self._batch = 0
        try:
            self.object = make()
            self.object.keyed = {}
            before = emitter.rows()
            self.object.open(context)
            if emitter.rows() != before:
                raise RuntimeError("emit_batch works in process_batch, tick and finish, not in __init__ or open")
        except STOPPING:
            raise
        except BaseException as error:
            raise self._fail(error, None, "open") from error
        cls = type(self.object)
        self._by_stream = len(plan.inputs) > 1 and cls.process_batch_stream is not BatchBolt.process_batch_stream

    def run(self, input: int, keys: Sequence[Any], values: Sequence[Any], ids: Sequence[str] | None) -> None:
        # What an element is named by on the wire is no key of the user's.
        rows = list(zip([key[0] for key in keys] if self.plan.objects == "partial_key" else keys, values))
        marks = self.emitter.marks()
        if self._by_stream:
            stream = self._streams[input]
            self._attempt(lambda: self.object.process_batch_stream(stream, rows), None, rows, "process_batch")
        else:
            self._attempt(lambda: self.object.process_batch(rows), None, rows, "process_batch")
        if ids is not None:
            # Rows out of a batch have no one source row: their ids are fresh, also at a replay.
            self.emitter.name(marks, f"{self.context.sub_unit}:b{self._batch}")
            self._batch += 1
        self._settle()

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
