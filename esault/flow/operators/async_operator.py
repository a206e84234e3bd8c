"""Bolts whose hooks are `async def`: each tuple is a call that may wait, with what it emits kept apart until it is over.

It is one module of over 300 lines: bolts per key and bolts with one object differ in a few lines each, and share the
account of open calls.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from types import CoroutineType
from typing import Any

from esault.errors import StateError
from esault.flow.operators.call_emitter import CURRENT
from esault.flow.operators.calls import FREE, Call, Calls
from esault.flow.operators.derived_class import by_stream
from esault.flow.operators.element_operator import ElementOperator
from esault.flow.operators.event_loop import EventLoop
from esault.flow.operators.object_operator import ObjectOperator
from esault.flow.operators.operator import STOPPING, Operator, defines
from esault.flow.operators.operator_parameters import OperatorParameters
from esault.flow.operators.user_error import UserError, say_hook
from esault.payload.attributes import get_attributes
from esault.routing.ring import Name, canonical
from esault.topology.function import is_async
from esault.topology.operators.enrich import Enrich

__all__ = ["AsyncElementOperator", "AsyncObjectOperator", "AsyncOperator"]


class AsyncOperator(Operator):
    """The common part of both: calls, their errors, and `close` that may wait."""

    #: there is a loop, and those that are to be closed once there is
    _attached = False
    _to_close: tuple[Any, ...] = ()

    def attach(self, calls: Calls, loop: EventLoop) -> None:
        """Set the place where calls wait for their turn, and the loop that runs them; before anything else is asked."""
        self.calls = calls
        self.loop = loop
        self.state.busy = self._busy
        #: calls that have ended, in that order
        self.ended: list[Call] = []
        #: what ends the topology
        self.failure: UserError | None = None
        #: the run ends: what is cancelled now is no error
        self.cancelling = False
        #: calls of `close` that have not ended
        self.closing = 0
        #: told of a call that has ended, within a step of the loop
        self.on_end: Callable[[Call], None] | None = None
        self._attached, to_close, self._to_close = True, self._to_close, ()
        for element in to_close:
            AsyncOperator._close(self, element)

    def tuple_call(self, batch: Any, input: int, key: Any, value: Any, id: str | None) -> Call:
        """The call for one tuple of `batch`."""
        stream = self._streams[input]
        return Call(
            owner=self,
            name=self._name_for(key),
            key=key,
            value=value,
            hook="process",
            run=lambda call: self._run(stream, call),
            batch=batch,
            id=id,
            input=input,
        )

    def reload(self, keys: Sequence[Any]) -> None:
        """Nothing: calls are open, and hold what would go."""

    def _busy(self, name: Name) -> bool:
        """Return whether a call is open that may change what has this name."""
        raise NotImplementedError

    def _name_for(self, key: Any) -> Any:
        return key if type(key) is str else canonical(key)

    async def _run(self, stream: str, call: Call) -> None:
        """Process the tuple of a call."""
        raise NotImplementedError

    def at_once(self, call: Call) -> bool:
        """Process a tuple for which nothing has to wait, and put its call into `ended`; False: it has to be run."""
        return False

    async def call(self, call: Call) -> None:
        """Do what a call is to do, under the unit's policy; it stands in `ended` afterwards."""
        attempt = call  # what a task emits that the call has started: it may outlive a try that fails
        CURRENT.set(attempt)
        policy, tries = self._policy, 0
        while True:
            try:
                await call.run(call)
                break
            except STOPPING:
                raise
            except BaseException as error:
                attempt.over, attempt.emitted = True, []
                if self.cancelling:
                    return
                if isinstance(error, (StateError, UserError)):
                    self.failure = UserError(str(error))
                    self.failure.__cause__ = error
                    break
                if call.hook != "open" and policy.tries_again(error, tries):
                    wait = policy.wait(tries, self._chance())
                    tries += 1
                    if wait:
                        await self.loop.sleep(wait)
                    attempt = call.again()
                    CURRENT.set(attempt)
                    continue
                if policy.kind == "fail" or call.hook == "open":
                    self.failure = self._fail(error, call.key, call.hook)
                    self.failure.__cause__ = error
                    break
                self.input = call.input
                self._survive(error, call.key, call.value, call.hook)
                break
        attempt.over = call.over = True
        call.emitted = attempt.emitted
        if call.then is not None:
            call.then()
        self.ended.append(call)
        if self.on_end is not None and self.failure is None:
            self.on_end(call)

    def settle(self) -> None:
        """Before the tuples of calls that have ended are acked: what was kept of them is durable. Raises UserError."""
        if self.failure is not None:
            raise self.failure
        self._settle()

    # what all objects share -----------------------------------------------------------------------------

    def _share(self, element: Any) -> None:
        if defines(type(element), "open_shared") and waits(type(element), "open_shared"):
            self._to_share = element
            self._shared = True
        else:
            super()._share(element)

    #: the object whose `open_shared` waits and is not over, and what others await meanwhile
    _to_share: Any = None
    _sharing: Any = None

    async def share_now(self) -> None:
        """Open what all objects share, once; who comes meanwhile waits. What it raises is an error of that tuple, and the next tries anew."""
        while self._to_share is not None:
            if self._sharing is not None:
                await self._sharing
                continue
            self._sharing = over = self.loop.future()
            try:
                self.context.share(await self._to_share.open_shared(self.context))
                self._sharer, self._to_share = self._to_share, None
            except BaseException as error:
                say_hook(error, "open_shared")
                raise
            finally:
                self._sharing = None
                if not over.done():
                    over.set_result(None)

    def close_shared(self) -> None:
        sharer = self._sharer
        if sharer is None or not waits(type(sharer), "close_shared"):
            super().close_shared()
            return
        self._sharer = None
        self.closing += 1
        self.loop.start(self._closed_shared(sharer))

    async def _closed_shared(self, sharer: Any) -> None:
        try:
            await sharer.close_shared(self.context.shared)
        except STOPPING:
            raise
        except BaseException as error:
            if not self.cancelling:
                print(self._fail(error, None, "close_shared"), file=sys.stderr)
        finally:
            self.closing -= 1

    async def _open_now(self, element: Any) -> None:
        """Open an object by an `open` that waits, and look at the first; see `OpenedState`."""
        looks = self._looks_at_open()
        attributes = get_attributes(element) if looks else {}
        before = self.emitter.rows()
        await element.open(self.context)
        if self.emitter.rows() != before:
            raise RuntimeError(f"unit {self.plan.name!r} emitted in open; emit in process, tick or finish")
        trial = self._opened_state.look(element, attributes) if looks else None
        if trial is None:
            return
        try:
            await trial.open(self.context)
        except Exception:
            return  # it asks for what came back
        try:
            self._opened_state.judge(element, trial)
        finally:
            AsyncOperator._close(self, trial)

    def _close(self, element: Any) -> None:
        if not waits(type(element), "close"):
            super()._close(element)
            return
        if not self._attached:
            self._to_close = (*self._to_close, element)
            return
        self.closing += 1
        self.loop.start(self._closed(element))

    async def _closed(self, element: Any) -> None:
        # What it emits is emitted after its end, and is refused as that.
        call = Call(
            owner=self, name=FREE, key=getattr(element, "key", None), value=None, hook="close", run=lambda call: None
        )
        call.over = True
        CURRENT.set(call)
        try:
            await wait_for(element.close())
        except STOPPING:
            raise
        except BaseException as error:
            if not self.cancelling:
                self._say_closing(error, call.key)
        finally:
            self.closing -= 1


def waits(cls: type[Any], hook: str) -> bool:
    """Return whether a hook of this class is `async def`."""
    found = _waits.get((cls, hook))
    if found is None:
        found = _waits[cls, hook] = is_async(getattr(cls, hook))
    return found


_waits: dict[tuple[type[Any], str], bool] = {}


async def wait_for(result: Any) -> None:
    """A hook may be `async def` or not."""
    if type(result) is CoroutineType or (result is not None and inspect.isawaitable(result)):
        await result


class AsyncElementOperator(AsyncOperator, ElementOperator):
    """One object per key, with one call at a time."""

    def __init__(self, parameters: OperatorParameters) -> None:
        #: elements whose `open` waits and has not been called, by id
        self._unopened: dict[int, Any] = {}
        super().__init__(parameters)
        #: whether its objects may know what they put out. The class says so: to make one is user code, which belongs to a call
        self._may_know = self._cls is not None and issubclass(self._cls, Enrich)

    async def _run(self, stream: str, call: Call) -> None:
        element = self.elements[call.key]
        if self._unopened or self._to_share is not None:
            await self._open(element)
        key = call.key[0] if self._partial else call.key
        if self._by_stream is None:
            self._by_stream = by_stream(type(element))
        work = element.process_stream(stream, key, call.value) if self._by_stream else element.process(key, call.value)
        try:
            await wait_for(work)
        finally:
            self._close_if_cleared(element)
        if not self._tried_state:
            self._try_state([call.key])
        if self._used is not None:
            self._used.add(call.name)

    def at_once(self, call: Call) -> bool:
        """Have an answer that is known put out without a task of asyncio's, which costs more than all else here."""
        if not self._may_know or call.hook != "process":
            return False
        within = CURRENT.set(call)
        try:
            if not self.elements[call.key].process_known(call.key, call.value):
                return False
        except Exception:
            call.emitted.clear()
            return False  # the call raises the same, and the unit's policy is asked
        finally:
            CURRENT.reset(within)
        if not self._tried_state:
            self._try_state([call.key])
        if self._used is not None:
            self._used.add(call.name)
        call.over = True
        self.ended.append(call)
        return True

    def _opened(self, element: Any, key: Any) -> None:
        if not waits(type(element), "open"):
            super()._opened(element, key)
            return
        if self._partial:
            element.key = key[0]
        self._unopened[id(element)] = element

    async def _open(self, element: Any) -> None:
        await self.share_now()
        if id(element) in self._unopened:
            await self._open_now(element)
            del self._unopened[id(element)]

    def _close(self, element: Any) -> None:
        if self._unopened.pop(id(element), None) is None:
            super()._close(element)

    def _close_cleared(self) -> None:
        """Close none: calls of others may be open. Each is closed behind its own."""

    def _close_if_cleared(self, element: Any) -> None:
        if self._clearing.cleared.pop(id(element), None) is not None:
            self._close(element)

    # hooks beside process: at once where nothing waits, else in their turn ------------------------------

    def _hook(
        self, name: Name, element: Any, hook: str, call: Callable[[], Any], then: Callable[[], None] | None = None
    ) -> None:
        at_once = id(element) not in self._unopened and not waits(type(element), hook)
        if at_once and not self.calls.queued(name):
            self._outside_process(call, element.key, hook)
            self._close_if_cleared(element)
            if then is not None:
                then()
            return

        async def run(_: Call) -> None:
            if self.elements.holds(name, element):  # it may have moved since
                await self._open(element)
                try:
                    await wait_for(call())
                finally:
                    self._close_if_cleared(element)

        self.calls.add(Call(owner=self, name=name, key=element.key, value=None, hook=hook, run=run, then=then))

    def ticking(self, now: float) -> Iterator[None]:
        yield from self.elements.wake_arrived()
        for name, element in self._each():
            if self.elements.holds(name, element):
                self._hook(name, element, "tick", lambda e=element: e.tick(now))  # type: ignore[misc]
                yield

    def _finish(self, name: Name, element: Any) -> None:
        self._hook(name, element, "finish", element.finish)

    def _expire(self, name: Name, element: Any) -> None:
        def forget() -> None:
            if self.elements.holds(name, element):
                self._close(element)
                self.forget(name)

        self._hook(name, element, "finish", element.finish, forget)

    def sweeping(self, now: float, before: Callable[[Collection[Name]], None]) -> Iterator[None]:
        if self._used is not None:
            self._used.update(self.calls.names)
        yield from super().sweeping(now, before)

    def _unused(self, names: list[Name]) -> list[Name]:
        # A call that began since the sweep did is not over, or waits for its turn: its object is at work.
        return [name for name in super()._unused(names) if not self.calls.queued(name)]

    def _busy(self, name: Name) -> bool:
        return self.calls.busy(name)


class AsyncObjectOperator(AsyncOperator, ObjectOperator):
    """One object for the sub-unit or the unit: its tuples wait side by side, those of one key one after the other."""

    def __init__(self, parameters: OperatorParameters) -> None:
        self._must_open = False
        super().__init__(parameters)

    def attach(self, calls: Calls, loop: EventLoop) -> None:
        super().attach(calls, loop)
        self._close_at_end = False
        #: calls of its own hooks that are not over
        self._hooks = 0
        if self._must_open:
            self._add_hook("open", self._open_first, alone=True)

    def _opened(self, element: Any, key: Any) -> None:
        if not waits(type(element), "open"):
            super()._opened(element, key)
            return
        if self._attached and not self._must_open:  # another object came, with its state
            self._add_hook("open", self._open_first, alone=True)
        self._must_open = True

    async def _open_first(self) -> None:
        await self.share_now()
        while self._must_open:
            opened = self.object
            await self._open_now(opened)
            self._must_open = opened is not self.object
            if self._must_open:  # meanwhile another one came, with its state
                super()._close(opened)

    def _add_hook(self, hook: str, call: Callable[[], Any], alone: bool = False) -> None:
        async def run(_: Call) -> None:
            if not self._given:
                await wait_for(call())

        def then() -> None:
            self._hooks -= 1
            if self._close_at_end and not self._hooks:
                self.close()

        self._hooks += 1
        self.calls.add(Call(owner=self, name=FREE, key=None, value=None, hook=hook, run=run, alone=alone, then=then))

    def _name_for(self, key: Any) -> Any:
        # Tuples without a key have no order among themselves.
        return FREE if key is None else super()._name_for(key)

    async def _run(self, stream: str, call: Call) -> None:
        bolt = self.object
        if self._to_share is not None:
            await self.share_now()
        await wait_for(
            bolt.process_stream(stream, call.key, call.value) if self._by_stream else bolt.process(call.key, call.value)
        )
        if not self._tried_state:
            self._try_state()

    def _hook(self, hook: str, call: Callable[[], Any]) -> None:
        if self._must_open or waits(type(self.object), hook):
            self._add_hook(hook, call)
        else:
            self._outside_process(call, None, hook)

    def ticking(self, now: float) -> Iterator[None]:
        self._hook("tick", lambda: self.object.tick(now))
        yield

    def finishing(self) -> Iterator[None]:
        self.context.finish_for("drained")
        self._hook("finish", self.object.finish)
        yield

    def close(self) -> None:
        if self._hooks:
            self._close_at_end = True
        else:
            super().close()

    def _close(self, element: Any) -> None:
        if not self._must_open:
            super()._close(element)

    def _busy(self, name: Name) -> bool:
        return self.calls.open > 0
