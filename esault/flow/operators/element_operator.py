"""One object per key.

It is one module of over 300 lines: all that calls the objects shares how they are made, tried, closed and forgotten.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

from esault.errors import StateError
from esault.flow.operators.broadcast_copies import BroadcastCopies
from esault.flow.operators.derived_class import NO_WINDOW, by_stream, maker_of_many
from esault.flow.operators.element_state import check_own_names, keeps_state, pack_state, put_state
from esault.flow.operators.elements import Elements
from esault.flow.operators.hot_loop import HotLoop
from esault.flow.operators.idle import IdleSweep
from esault.flow.operators.memory_bound import MemoryBound
from esault.flow.operators.operator import STOPPING, Operator, defines
from esault.flow.operators.operator_parameters import OperatorParameters
from esault.flow.operators.operator_state import OperatorState
from esault.flow.operators.state_clearing import StateClearing
from esault.flow.operators.timer_service import TimerService
from esault.flow.operators.user_error import UserError
from esault.routing.many_keys import names_of
from esault.routing.ring import Name, canonical, key_of
from esault.topology.states_on_disk import why_not_on_disk

__all__ = ["ElementOperator"]


class ElementOperator(Operator):
    """One object per key."""

    #: of those with broadcast state
    copies: BroadcastCopies | None = None

    def __init__(self, parameters: OperatorParameters) -> None:
        super().__init__(parameters)
        plan, now = self.plan, parameters.now
        assert plan.factory is not None
        self.elements = Elements(plan.name, self._made, self._opened, self._close, self.codec, bool(plan.tick_every))
        timers = levels = None
        if plan.timers:
            holds = self.elements.holds
            service = TimerService(plan, self.emitter, holds, self._awake, self._outside_process, self.expire)
            self.timer_service, self.context = service, service.told(self.context)
            timers, levels = service.timers, service.levels
        self._clearing = StateClearing(self.elements, timers)
        self.state = OperatorState(
            plan,
            self.codec,
            self.elements,
            self._silent,
            timers=timers,
            levels=levels,
            levels_move=plan.watermarks,
            broadcast=self.copies,
        )
        if self.timer_service is not None:
            self.state.came = self.timer_service.key_came
        self._make, self._cls = maker_of_many(
            plan.factory, self.emitter, {"context": self.context, **NO_WINDOW, **self._members()}
        )
        self._by_stream: bool | None = None if self._cls is None else by_stream(self._cls)
        self._tried_state = False
        self._partial = plan.objects == "partial_key"
        self._idle = IdleSweep(plan.idle_after, now) if plan.idle_after else None
        by_clock = plan.expire_after if plan.expire_by == "processing" else None
        self._expiry = IdleSweep(by_clock, now, generations=4) if by_clock else None
        #: of objects that are all of one class
        may_be_hot = type(self) is ElementOperator and not plan.timers and self._cls is not None
        self._hot = self._clearing.hot = HotLoop(self.emitter, True, self.context.in_thread) if may_be_hot else None
        #: each row is a call of `_process`
        self._row_by_row = self._careful or self._partial or bool(plan.times)
        if why_not_on_disk(plan) is None:
            self.memory = MemoryBound(
                plan.name, self.elements, lambda: parameters.states_on_disk(self.codec), self.context.logger
            )
            if plan.keys_in_memory is not None:
                self.memory.set(plan.keys_in_memory)
        self._used: set[Name] | None = set() if self._idle or self._expiry else None

    def run(self, input: int, keys: Sequence[Any], values: Sequence[Any], ids: Sequence[str] | None) -> None:
        elements = self.elements
        if self._row_by_row or self._lack_times(input, values):
            self._run_row_by_row(input, keys, values, ids)
        else:
            key: Any = None
            hot = self._hot if self._by_stream is False else None
            if hot is not None and not hot.ready(self._cls, len(keys), ids is not None):  # type: ignore[arg-type]
                hot = None
            try:
                if self._by_stream is None:
                    for key in keys[:1]:
                        self._by_stream = by_stream(type(elements[key]))
                if self._by_stream:
                    stream = self._streams[input]
                    if ids is None:
                        for key, value in zip(keys, values):
                            elements[key].process_stream(stream, key, value)
                    else:
                        name = self._name
                        for key, value, id in zip(keys, values, ids):
                            elements[key].process_stream(stream, key, value)
                            name(id)
                elif hot is not None:
                    hot.run(elements, keys, values, ids)
                elif ids is None:
                    for key, value in zip(keys, values):
                        elements[key].process(key, value)
                elif (emitted := self.emitter.only_column) is not None:
                    ends: list[int] = []
                    end = ends.append
                    for key, value in zip(keys, values):
                        elements[key].process(key, value)
                        end(len(emitted))
                    self.emitter.name_each(ids, ends)
                else:
                    name = self._name
                    for key, value, id in zip(keys, values, ids):
                        elements[key].process(key, value)
                        name(id)
            except STOPPING:
                raise
            except BaseException as error:
                raise self._raised(error, key if hot is None else hot.key(keys)) from error
        if self._clearing.cleared:
            self._close_cleared()
        if self._used is not None:
            self._used.update(names_of(keys))
        if self.memory is not None and self.memory.most is not None:
            self.memory.use(names_of(keys))
        if not self._tried_state:
            self._try_state(keys)

    def _run_row_by_row(
        self, input: int, keys: Sequence[Any], values: Sequence[Any], ids: Sequence[str] | None
    ) -> None:
        call = self._timed(input, functools.partial(self._process, self._streams[input]))
        hot = None if self._partial or self._by_stream is not False else self._hot
        if hot is not None and hot.ready(self._cls, len(keys), True):  # type: ignore[arg-type]
            self._run_hot(hot, self.elements, call, keys, values, ids)
        else:
            self._run_careful(call, keys, values, ids)

    def _process(self, stream: str, key: Any, value: Any) -> None:
        element = self.elements[key]
        if self._partial:
            key = key[0]
        if self._by_stream is None:
            self._by_stream = by_stream(type(element))
        if self._by_stream:
            element.process_stream(stream, key, value)
        else:
            element.process(key, value)

    def _opened(self, element: Any, key: Any) -> None:
        if self._partial:
            element.key = key[0]
        super()._opened(element, key)

    def _made(self) -> Any:
        element = self._silent(self._make, "__init__")
        if self._cls is None:
            self._cls = type(element)
        if not self._shared:
            self._share(element)
        emitted = self.emitter.only_column
        classes = isinstance(self._make, (type, functools.partial))  # and no function, which may make this or that
        if classes and emitted is not None and not self._partial and not defines(self._cls, "open"):
            self.elements.make_plainly(self._make, emitted)
        return element

    def _try_state(self, keys: Sequence[Any]) -> None:
        """Save the first object once, so that a state that cannot move is found now and not when it must."""
        for key in keys[:1]:
            element = self.elements.present(canonical(key))
            if element is None:  # its state was cleared: the next one will do
                return
            check_own_names(self.plan.name, element, key[0] if self._partial else key)
            try:
                put_state(self.plan.name, element, pack_state(self.plan.name, element, self.codec), self.codec)
                self._opened_state.try_again(element)
            except StateError as error:
                raise UserError(str(error)) from error
        self._tried_state = True

    def _awake(self, name: Name) -> Any:
        """Return the object of this name, made again under the policy if it was put away; None: there is none, or it could not be made."""
        element = self.elements.present(name)
        if element is None:
            made: list[Any] = []
            self._attempt(lambda: made.append(self.elements.wake(name)), key_of(name), None, "open")
            self._settle()
            element = made[0] if made else None
        return element

    def _close_cleared(self) -> None:
        """Close those whose `clear_state` was called: what they were asked is done."""
        cleared = self._clearing.cleared
        while cleared:
            self._close(cleared.popitem()[1])

    def _outside_process(self, call: Callable[[], Any], key: Any, hook: str, value: Any = None) -> bool:
        well = super()._outside_process(call, key, hook, value)
        if self._clearing.cleared:
            self._close_cleared()
        return well

    def _members(self) -> dict[str, Any]:
        return {**super()._members(), **({} if self.plan.in_parts else self._clearing.members())}

    def _each(self) -> Iterator[tuple[Name, Any]]:
        return self.elements.live()

    def ticking(self, now: float) -> Iterator[None]:
        yield from self.elements.wake_arrived(self._awake)
        for name, element in self._each():
            if self.elements.holds(name, element):  # it may have moved since the round began
                self._outside_process(lambda e=element: e.tick(now), element.key, "tick")  # type: ignore[misc]
                yield

    @property
    def _finishes(self) -> bool:
        """Return whether the objects have a `finish`; those that have none are not made for it, and there may be millions."""
        if self._cls is None:  # none has been made here yet: one speaks for all
            self._awake(next(iter(self.elements.names()), None))
        return defines(self._cls, "finish")

    def finishing(self) -> Iterator[None]:
        if self.timer_service is not None:
            yield from self.timer_service.finishing()
        if not self._finishes:
            return
        if self.memory is not None and self.memory.most is not None:
            yield from self._finishing_by_name(self.memory)
            return
        self.elements.wake_all(self._awake)
        for name, element in self._each():
            self.context.finish_for("drained")
            self._finish(name, element)
            yield

    def _finishing_by_name(self, memory: MemoryBound) -> Iterator[None]:
        """Finish all, of which not all have room in memory at once."""
        for name in self.elements.all_names():
            element = self._awake(name)
            if element is not None:
                self.context.finish_for("drained")
                self._finish(name, element)
                yield
            memory.keep(self.context.now(), 1)

    def _finish(self, name: Name, element: Any) -> None:
        self._outside_process(element.finish, element.key, "finish")

    def close(self) -> None:
        if defines(self._cls, "close"):
            for _, element in self._each():
                self._close(element)

    @property
    def next_sweep(self) -> float | None:
        times = [sweep.next_at for sweep in (self._idle, self._expiry) if sweep is not None]
        return min(times) if times else None

    def sweeping(self, now: float, before: Callable[[Collection[Name]], None]) -> Iterator[None]:
        if self._used is None:
            return
        idle, expiry = self._idle, self._expiry
        used, self._used = self._used, set()
        # Each sweep needs all keys that were used since its own last one.
        for sweep in (idle, expiry):
            if sweep is not None:
                sweep.use(used)
        if idle is not None and idle.due(now):
            for names in idle.sweep(now, [name for name, _ in self._each()]):
                for name in self._unused(names):
                    self.elements.put_away(name)
                yield
        if expiry is not None and expiry.due(now):
            for names in expiry.sweep(now, self.elements.scan()):
                gone = self._unused(names)
                if gone:
                    before(gone)
                    self.expire(gone)
                yield

    def _unused(self, names: list[Name]) -> list[Name]:
        """Those of them for which no tuple came since the sweep began."""
        return [name for name in names if name not in self._used] if self._used else names

    def waits(self, name: Name) -> bool:
        """Return whether something is still to be done for this key, so that it does not expire."""
        return self.timer_service is not None and self.timer_service.waits(name)

    def expire(self, names: Iterable[Name]) -> bool:
        """Finish and forget elements, but those that wait; whether there were any."""
        if self.timer_service is not None:
            names = [name for name in names if not self.waits(name)]
        found, finishes = False, self._finishes
        for name in names:
            # What was put away was closed then: only to finish it, it is made again.
            element = self._awake(name) if finishes else self.elements.present(name)
            found = found or element is not None
            if not finishes:
                if element is not None:
                    self._close(element)
                self.elements.forget(name)
            elif element is not None:
                self.context.finish_for("expired")
                self._expire(name, element)
        return found

    def _expire(self, name: Name, element: Any) -> None:
        self._finish(name, element)
        if self.elements.holds(name, element):
            self._close(element)
            self.forget(name)

    def forget(self, name: Name) -> None:
        """Remove an object whose life is over, with the timers that `finish` has set."""
        self.elements.forget(name)
        if self.timer_service is not None:
            self.timer_service.timers.pop(name)

    def stop_sweeping(self) -> None:
        """Leave it to the caller to name idle elements: `sweep` does nothing any more."""
        self._idle = self._expiry = self._used = None

    def order_by_key(self) -> None:
        self.elements.ordered = True
        if self.timer_service is not None:
            self.timer_service.timers.ordered = True

    @property
    def states(self) -> int:
        # One element speaks for all: this is asked several times a second, however many there are.
        some = next(iter(self.elements.values()), None)
        count = 0 if some is not None and not keeps_state(some) else self.elements.count
        return count or (0 if self.timer_service is None else len(self.timer_service.timers))
