"""One object for the sub-unit, or for the whole unit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from esault.errors import StateError
from esault.flow.operators.derived_class import by_stream, maker
from esault.flow.operators.element_state import check_own_names, keeps_state, pack_state, put_state
from esault.flow.operators.hot_loop import HotLoop
from esault.flow.operators.operator import STOPPING, Operator
from esault.flow.operators.operator_parameters import OperatorParameters
from esault.flow.operators.user_error import UserError
from esault.topology.bolt import Bolt

if TYPE_CHECKING:
    from esault.topology.process_loop import ProcessLoop

__all__ = ["ObjectOperator"]


class ObjectOperator(Operator):
    """One object for the whole sub-unit, or for the whole unit."""

    def __init__(self, parameters: OperatorParameters) -> None:
        super().__init__(parameters)
        emitter, factory = self.emitter, self.plan.factory
        assert factory is not None
        members = {"emit": emitter.function(), "context": self.context, **self._members()}
        self._new, _ = maker(factory, members, Bolt)
        try:
            self.object = self._silent(self._new, "__init__")
            self.object.key = None
            self._share(self.object)
            self._opened(self.object, None)
        except STOPPING:
            raise
        except BaseException as error:
            raise self._fail(error, None, "open") from error
        self._by_stream = by_stream(type(self.object))
        self._tried_state = False
        #: the one object of the unit went to another sub-unit
        self._given = False

        def trusted() -> None:
            type(self.object).emit = emitter.function()

        emitter.on_trusted = trusted
        self._hot = HotLoop(emitter, False, self.context.in_thread) if type(self) is ObjectOperator else None

    def run(self, input: int, keys: Sequence[Any], values: Sequence[Any], ids: Sequence[str] | None) -> None:
        if self._by_stream:
            process_stream, stream = self.object.process_stream, self._streams[input]
            self._run_careful(lambda key, value: process_stream(stream, key, value), keys, values, ids)
        elif self._careful:
            # The length of the column before a row is what to go back to where it raises.
            if self._hot is not None and self._hot.ready(type(self.object), len(keys), True):
                self._run_hot(self._hot, self.object, self.object.process, keys, values, ids)
            else:
                self._run_careful(self.object.process, keys, values, ids)
        else:
            process, hot = self.object.process, self._hot
            if hot is not None and not hot.ready(type(self.object), len(keys), ids is not None):
                hot = None
            key: Any = None
            try:
                if hot is not None:
                    hot.run(self.object, keys, values, ids)
                elif ids is None:
                    for key, value in zip(keys, values):
                        process(key, value)
                elif (emitted := self.emitter.only_column) is not None:
                    ends: list[int] = []
                    end = ends.append
                    for key, value in zip(keys, values):
                        process(key, value)
                        end(len(emitted))
                    self.emitter.name_each(ids, ends)
                else:
                    name = self._name
                    for key, value, id in zip(keys, values, ids):
                        process(key, value)
                        name(id)
            except STOPPING:
                raise
            except BaseException as error:
                raise self._fail(error, key if hot is None else hot.key(keys), "process") from error
        if not self._tried_state:
            self._try_state()

    def mapping(self, count: int) -> ProcessLoop | None:
        hot = self._hot
        if hot is None or self._careful or not hot.maps or not hot.ready(type(self.object), count, False):
            return None
        return hot.loop

    def mapped(self, keys: Sequence[Any], values: Sequence[Any]) -> tuple[Any, ...] | None:
        hot = self._hot
        if hot is None or self.mapping(len(keys)) is None:
            return None
        try:
            return tuple(hot.mapped(values))
        except STOPPING:
            raise
        except BaseException as error:
            raise self._fail(error, hot.key(keys), "process") from error

    def _try_state(self) -> None:
        """That it cannot move is found now and not when it must."""
        self._tried_state = True
        check_own_names(self.plan.name, self.object, self.object.key)
        try:
            pack_state(self.plan.name, self.object, self.codec)
        except StateError as error:
            raise UserError(str(error)) from error
        self._try_opened(self.object)

    def close(self) -> None:
        if not self._given:
            self._close(self.object)

    def reload(self, keys: Sequence[Any]) -> None:
        try:
            state = pack_state(self.plan.name, self.object, self.codec)
            self._close(self.object)
            self.object = self._silent(self._new, "__init__")
            self.object.key = None
            put_state(self.plan.name, self.object, state, self.codec)
        except StateError as error:
            raise UserError(str(error)) from error
        try:
            self._opened(self.object, None)
        except STOPPING:
            raise
        except BaseException as error:
            raise self._fail(error, None, "open") from error

    def names(self) -> list[Any]:
        return [None] if self.plan.objects == "unit" and not self._given else []

    def remove_state(self, name: Any) -> bytes | None:
        if self._given or self.plan.objects != "unit":
            return None
        self._given = True
        state = pack_state(self.plan.name, self.object, self.codec)
        self._close(self.object)
        return state

    def install_state(self, key: Any, state: bytes) -> None:
        put_state(self.plan.name, self.object, state, self.codec)

    def saved_names(self) -> list[Any]:
        return [] if self._given or not self.object.__getstate__() else [None]

    def peek(self, name: Any) -> bytes | None:
        return pack_state(self.plan.name, self.object, self.codec)

    @property
    def states(self) -> int:
        return 1 if keeps_state(self.object) else 0
