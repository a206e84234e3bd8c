"""A BatchBolt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from esault.errors import PayloadError, StateError
from esault.flow.operators.batch_emitter import BatchEmitter
from esault.flow.operators.derived_class import maker
from esault.flow.operators.keyed import Keyed
from esault.flow.operators.operator import STOPPING, Operator
from esault.flow.operators.operator_parameters import OperatorParameters
from esault.flow.operators.operator_state import OperatorState
from esault.flow.operators.user_error import UserError
from esault.payload.column import PLAIN_TYPES, plain
from esault.payload.remedy import type_name
from esault.routing.many_keys import are_keys, have_bools, names_of
from esault.routing.ring import Name, check_key, key_of
from esault.topology.bolt import BatchBolt, takes_columns

__all__ = ["BatchOperator", "KeyedOfBatch"]

#: entries of `keyed` that are looked at after the first batch
TRIED = 64


class BatchOperator(Operator):
    """A BatchBolt: the policy covers a batch, since the engine does not see its tuples."""

    def __init__(self, parameters: OperatorParameters) -> None:
        super().__init__(parameters)
        plan, context, emitter = self.plan, self.context, self.emitter
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
        self.state = OperatorState(plan, self.codec, KeyedOfBatch(self), self._silent)
        self._by_key = plan.objects.endswith("key")
        #: what `keyed` was before a key came that holds a bool: it must not be written to any more
        self._left: dict[Any, Any] | None = None

    def run(self, input: int, keys: Sequence[Any], values: Sequence[Any], ids: Sequence[str] | None) -> None:
        if self.plan.objects == "partial_key":
            keys = [key[0] for key in keys]  # what an element is named by on the wire is no key of the user's
        # All items of an array are of one type.
        if self._by_key and self._left is None and have_bools(keys if type(keys) in PLAIN_TYPES else plain(keys[:1])):
            self._tell_apart()
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
            # A try that fails may have taken rows out of its list: each has its own, and so has the dead letter.
            given = rows.copy if self._careful else lambda: rows
            call = (
                (lambda: batch.process_batch_stream(stream, given()))
                if self._by_stream
                else (lambda: batch.process_batch(given()))
            )
            self._attempt(call, None, rows, "process_batch")
        if ids is not None:
            # Rows out of a batch have no one source row: their ids are fresh, also at a replay.
            self.emitter.name(marks, f"{self.context.sub_unit}:b{self.ordinal}")
            self.ordinal += 1
        self._settle()
        if self._left:
            raise UserError(
                f"unit {self.plan.name!r}: {type(batch).__name__} holds on to a dict that was its self.keyed before a key held a "
                "bool; write self.keyed wherever it is meant"
            )
        if not self._tried_state and batch.keyed:
            self._tried_state = True
            self._try_state()

    def _tell_apart(self) -> None:
        """Make `keyed` a dict in which True and 1 are two keys, which costs more than a plain one."""
        batch = self.object
        if type(batch.keyed) is not dict:
            raise UserError(
                f"unit {self.plan.name!r}: {type(batch).__name__}.keyed is a {type_name(type(batch.keyed))} that the bolt made, in "
                "which True and 1 are one key; keep the dict that is there, or emit keys without a bool"
            )
        self._left = batch.keyed
        batch.keyed = Keyed(self._left)
        self._left.clear()

    def _survive(self, error: BaseException, key: Any, value: Any, hook: str) -> None:
        if hook == "process_columns":  # a dead letter is made of rows
            value = list(zip(*map(plain, value)))
        super()._survive(error, key, value, hook)

    def _try_state(self) -> None:
        """Check now that what came first can be saved, and not when it must be."""
        unit, cls = self.plan.name, type(self.object).__name__
        for key, state in islice(self.object.keyed.items(), TRIED):
            try:
                self._check_key(key)
            except StateError as error:
                raise UserError(str(error)) from error
            try:
                self.codec.pack_value(state)
            except PayloadError as error:
                raise UserError(
                    f"unit {unit!r}: the state of key {key!r} in {cls}.keyed cannot be moved or saved: {error}"
                ) from error

    def _check_key(self, key: Any) -> None:
        """Raise StateError for a key of `keyed` that belongs to no sub-unit."""
        try:
            check_key(key)
            if key is None and self._by_key:
                raise PayloadError("None belongs to no sub-unit; use a text, such as 'all'")
        except PayloadError as error:
            unit, cls = self.plan.name, type(self.object).__name__
            raise StateError(f"unit {unit!r}: a key in {cls}.keyed cannot be moved or saved: {error}") from error

    def check_keys(self) -> None:
        """Look at all keys of `keyed`, which may have come long after the first batch. Raises StateError."""
        keys = list(self.object.keyed)
        if self._by_key and keys and not are_keys(keys):
            for key in keys:
                self._check_key(key)

    def close(self) -> None:
        self._close(self.object)

    @property
    def states(self) -> int:
        return len(self.object.keyed)


class KeyedOfBatch:
    """The states in the `keyed` of a batch bolt."""

    def __init__(self, of: BatchOperator) -> None:
        self._of = of

    def names(self) -> list[Name]:
        self._of.check_keys()
        return names_of(self._of.object.keyed)

    in_memory = names

    def scan(self) -> Iterator[Name]:
        return iter(self.names())

    def note_made(self, names: list[Name] | None) -> bool:
        return False

    def on_disk(self) -> Iterator[Name]:
        return iter(())

    @property
    def count(self) -> int:
        return len(self._of.object.keyed)

    def take_state(self, name: Name) -> bytes | None:
        try:
            value = self._of.object.keyed.pop(key_of(name))
        except KeyError:
            return None
        return self._of.codec.pack_value(value)

    def peek_state(self, name: Name) -> bytes | None:
        keyed, key = self._of.object.keyed, key_of(name)
        return self._of.codec.pack_value(keyed[key]) if key in keyed else None

    def put_state(self, key: Any, state: bytes) -> None:
        if self._of._by_key and self._of._left is None and have_bools((key,)):
            self._of._tell_apart()
        self._of.object.keyed[key] = self._of.codec.unpack(state)

    def reload(self, keys: Sequence[Any]) -> list[Name]:
        keyed, codec, names = self._of.object.keyed, self._of.codec, names_of(plain(keys))
        for key in map(key_of, set(names)):
            if key in keyed:
                keyed[key] = codec.unpack(codec.pack_value(keyed[key]))
        return names
