"""One object for the sub-unit, or for the whole unit."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from esault.errors import StateError
from esault.flow.operators.derived_class import NO_WINDOW, by_stream, maker
from esault.flow.operators.element_state import check_own_names, keeps_state, pack_state, put_state
from esault.flow.operators.hot_loop import HotLoop
from esault.flow.operators.operator import STOPPING, Operator, defines
from esault.flow.operators.operator_parameters import OperatorParameters
from esault.flow.operators.operator_state import OperatorState
from esault.flow.operators.timer_service import TimerService
from esault.flow.operators.user_error import UserError
from esault.flow.watermark.key_timers import KeyTimers
from esault.routing.ring import Name
from esault.topology.bolt import Bolt

if TYPE_CHECKING:
    from esault.topology.process_loop import ProcessLoop

__all__ = ["ObjectOperator", "OneObject"]


class ObjectOperator(Operator):
    """One object for the whole sub-unit, or for the whole unit."""

    #: the one object of the unit went to another sub-unit, or is not at work yet
    _given = True

    def __init__(self, parameters: OperatorParameters) -> None:
        super().__init__(parameters)
        plan, emitter, factory = self.plan, self.emitter, self.plan.factory
        assert factory is not None
        timers = None
        if plan.timers:
            service = TimerService(plan, emitter, self._holds, self._awake, self._outside_process, lambda names: False)
            self.timer_service, self.context, timers = service, service.told(self.context), service.timers
        self.state = OperatorState(plan, self.codec, OneObject(self, timers), self._silent, timers=timers)
        members = {"emit": emitter.function(), "context": self.context, **NO_WINDOW, **self._members()}
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
        #: each row is a call of `_row`
        self._row_by_row = self._by_stream or bool(plan.times)
        self._tried_state = self._given = False

        def trusted() -> None:
            type(self.object).emit = emitter.function()

        emitter.on_trusted = trusted
        may_be_hot = type(self) is ObjectOperator and not plan.timers
        self._hot = HotLoop(emitter, False, self.context.in_thread) if may_be_hot else None

    def run(self, input: int, keys: Sequence[Any], values: Sequence[Any], ids: Sequence[str] | None) -> None:
        if self._row_by_row or self._lack_times(input, values):
            self._run_careful(self._row(input), keys, values, ids)
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

    def _row(self, input: int) -> Callable[[Any, Any], Any]:
        """Return what processes a row of an input."""
        process: Callable[[Any, Any], Any] = self.object.process
        if self._by_stream:
            process = functools.partial(self.object.process_stream, self._streams[input])
        return self._timed(input, process)

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
            self._opened_state.try_again(self.object)
        except StateError as error:
            raise UserError(str(error)) from error

    def close(self) -> None:
        if not self._given:
            self._close(self.object)

    def _holds(self, name: Name, element: Any) -> bool:
        return not self._given and element is self.object

    def _awake(self, name: Name) -> Any:
        return None if self._given else self.object

    @property
    def states(self) -> int:
        return 1 if keeps_state(self.object) else 0 if self.timer_service is None else len(self.timer_service.timers)


class OneObject:
    """The state of the one object, whose name is None."""

    def __init__(self, of: ObjectOperator, timers: KeyTimers | None) -> None:
        self._of, self._timers = of, timers

    def names(self) -> list[Name]:
        return [None] if self._of.plan.objects == "unit" and not self._of._given else []

    def scan(self) -> Iterator[Name]:
        return iter(self.names())

    def note_made(self, names: list[Name] | None) -> bool:
        return False

    def in_memory(self) -> list[Name]:
        of = self._of
        return [None] if not of._given and (of.object.__getstate__() or self._timers) else []

    def on_disk(self) -> Iterator[Name]:
        return iter(())

    @property
    def count(self) -> int:
        return len(self.in_memory())

    def take_state(self, name: Name) -> bytes | None:
        if not self.names():
            return None
        self._of._given = True
        state = self.peek_state(name)
        self._of._close(self._of.object)
        return state

    def peek_state(self, name: Name) -> bytes:
        of = self._of
        return pack_state(of.plan.name, of.object, of.codec)

    def put_state(self, key: Any, state: bytes) -> None:
        of = self._of
        if defines(type(of.object), "open"):  # it is called behind the state, as for objects of keys
            self._replace(state)
        else:
            put_state(of.plan.name, of.object, state, of.codec)

    def _replace(self, state: bytes) -> None:
        """Put another object with this state, opened, in the place of the one there is."""
        of = self._of
        given, of._given = of._given, True  # neither the one that goes nor the one that comes is at work meanwhile
        of._close(of.object)
        of.object = of._silent(of._new, "__init__")
        of.object.key = None
        put_state(of.plan.name, of.object, state, of.codec)
        try:
            of._opened(of.object, None)
        except STOPPING:
            raise
        except BaseException as error:
            raise of._fail(error, None, "open") from error
        of._given = given

    def reload(self, keys: Sequence[Any]) -> list[Name]:
        self._replace(self.peek_state(None))
        return [None]
