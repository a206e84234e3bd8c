"""The common part of all operators: emits, the error policy, ids and the calls beside `process`.

It is one module of over 300 lines: it is the one place where user code is called, with the error policy around it.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from esault.errors import StateError
from esault.flow.operators.dead_letter import dead_letter, rows_of
from esault.flow.operators.hot_loop import HotLoop
from esault.flow.operators.long_opens import LongOpens
from esault.flow.operators.memory_bound import MemoryBound
from esault.flow.operators.opened_state import OpenedState
from esault.flow.operators.operator_parameters import OperatorParameters
from esault.flow.operators.operator_state import OperatorState
from esault.flow.operators.timer_service import TimerService
from esault.flow.operators.user_error import UserError, described, hook_of, say_hook
from esault.flow.watermark.clock import times_at_once
from esault.payload.attributes import get_attributes
from esault.routing.ring import Name
from esault.topology.aggregates.aggregated import is_one_value
from esault.topology.bolt import Bolt
from esault.topology.function import is_async

if TYPE_CHECKING:
    from esault.topology.process_loop import ProcessLoop

__all__ = ["STOPPING", "Operator", "defines"]

#: ends the process, whatever the error policy says
STOPPING = (KeyboardInterrupt, GeneratorExit)


class Operator:
    """The common part of all three: emits, the error policy, ids and the calls beside `process`."""

    #: whether `run` takes arrays; else it gets tuples
    takes_arrays = False
    #: of the tuple that is processed; None where that is not known any more
    input: int | None = 0
    #: how many keys it holds in memory; None where all are, always
    memory: MemoryBound | None = None
    #: of those with one object
    object: Any
    #: what is saved and moved
    state: OperatorState
    #: of those whose objects set timers
    timer_service: TimerService | None = None
    #: makes an object of many, and their class, where it is known: each has the hooks of the first one
    _make: Callable[[], Any]
    _cls: type[Any] | None = None

    def __init__(self, parameters: OperatorParameters) -> None:
        plan = self.plan = parameters.plan
        self.context = parameters.context
        emitter = self.emitter = parameters.emitter
        self.codec = parameters.codec
        self.dead_letter_sink = parameters.dead_letter_sink
        self._pause = parameters.pause
        self._chance = random.Random(f"{self.context.run}/{plan.name}/{self.context.sub_unit}").random
        self.errors = 0
        #: tuples whose window had closed
        self.late = 0
        self.dead_letters = 0
        self._policy = plan.on_error
        #: errors are survived: emits of a failed try must be forgotten
        self._careful = plan.on_error.kind != "fail" or plan.on_error.retries != 0
        self._name = emitter.namer()
        self._streams = [i.stream for i in plan.inputs]
        #: names that were made up for rows without a source row; they move with this object to another process
        self.ordinal = 0
        self._dead_letters_open = False
        self._opened_state = OpenedState(plan.name, self.codec)
        self._long_opens = LongOpens()

    # errors ------------------------------------------------------------------------------------

    def _fail(self, error: BaseException, key: Any, hook: str) -> UserError:
        key = self._users_key(key, hook)
        return UserError(f"unit {self.plan.name!r}, {hook_of(error, hook)}, key {key!r}: {described(error)}")

    def _raised(self, error: BaseException, key: Any, hook: str = "process") -> UserError:
        """Return the error that ends the run where a hook has raised this one; of a state that cannot move its text is known."""
        return UserError(str(error)) if isinstance(error, StateError) else self._fail(error, key, hook)

    def _users_key(self, key: Any, hook: str) -> Any:
        """Return the key of a row as its user knows it: what a part of it is named by on the wire is no key of the user's."""
        named = self.plan.in_parts and hook in ("process", "time") and type(key) is tuple and len(key) == 2
        return key[0] if named else key

    def _attempt(
        self, call: Callable[[], Any], key: Any, value: Any, hook: str, failed: BaseException | None = None
    ) -> bool:
        """Call under the unit's policy; whether it went well. `failed`: what it has raised already. Raises UserError under `fail`."""
        policy = self._policy
        marks = self.emitter.marks()
        tries = 0
        while True:
            try:
                if failed is not None:
                    error, failed = failed, None
                    raise error
                call()
                return True
            except STOPPING:
                raise
            except BaseException as error:
                self.emitter.rewind(marks)
                if isinstance(error, StateError):
                    raise UserError(str(error)) from error
                if policy.tries_again(error, tries):
                    self._pause(policy.wait(tries, self._chance()))
                    tries += 1
                    continue
                if policy.kind == "fail":
                    raise self._fail(error, key, hook) from error
                self._survive(error, key, value, hook)
                return False

    def _survive(self, error: BaseException, key: Any, value: Any, hook: str) -> None:
        self.errors += 1
        if self.errors == 1:
            what = "skipped" if self._policy.kind == "skip" else f"kept in {self.dead_letter_sink}"
            text = str(self._fail(error, key, hook))
            self.context.logger.error("%s\n(the tuple is %s; further errors of this unit are only counted)", text, what)
        if self._policy.kind == "dead_letter":
            self.dead_letters += 1
            self._dead_letters_open = True
            key = self._users_key(key, hook)
            at, rows = None if self.input is None else f"input:{self.input}", rows_of(hook, key, value)
            time, number = self._event_time(value), self.dead_letters
            context, codec = self.context, self.codec
            combined = self.plan.combined and hook == "process" and is_one_value(value)
            record = dead_letter(
                context,
                codec,
                error,
                hook,
                key,
                value=value[2] if combined else value,
                number=number,
                at=at,
                rows=rows,
                event_time=time,
                combined=combined,
            )
            self.dead_letter_sink.put(record)

    def _event_time(self, value: Any) -> float | None:
        """The time of a tuple, seconds since the epoch; None where the bolt is not told it, or it has none."""
        plan, input = self.plan, self.input
        times = plan.times or (plan.window.times if plan.window is not None else ())
        if input is None or input >= len(times):
            return None
        try:
            return float(times[input](value))
        except Exception:  # that may be what failed
            return None

    def _settle(self) -> None:
        if self._dead_letters_open:  # durable before the batch is acked
            self._dead_letters_open = False
            self.dead_letter_sink.sync()

    # the loops ---------------------------------------------------------------------------------

    def run(self, input: int, keys: Sequence[Any], values: Sequence[Any], ids: Sequence[str] | None) -> None:
        """Process a batch; what is emitted stands in the emitter's columns. Raises UserError."""
        raise NotImplementedError

    def mapping(self, count: int) -> ProcessLoop | None:
        """Return the loop of a `process` by which `mapped` would process so many tuples; None where it would not."""
        return None

    def failed(self, error: BaseException, key: Any) -> UserError:
        """Return what `mapped` raises where the `process` raises this for a tuple with this key."""
        return self._fail(error, key, "process")

    def mapped(self, keys: Sequence[Any], values: Sequence[Any]) -> tuple[Any, ...] | None:
        """Process a batch of which each tuple brings forth one of the main stream with its key, and return their values; None: `run` it.

        Raises UserError.
        """
        return None

    def _run_careful(
        self,
        call: Callable[[Any, Any], Any],
        keys: Sequence[Any],
        values: Sequence[Any],
        ids: Sequence[str] | None,
        then: Callable[[], None] | None = None,
    ) -> None:
        """Row by row under the policy; `then` is called behind each row, whatever became of it."""
        emitter = self.emitter
        for i, key in enumerate(keys):
            value = values[i]
            marks = emitter.marks()
            error: BaseException | None = None
            try:
                call(key, value)
            except STOPPING:
                raise
            except BaseException as raised:
                error = raised
            if error is not None:  # not in the `except`: what another try raises would come with this error before it
                emitter.rewind(marks)
                self._attempt(lambda k=key, v=value: call(k, v), key, value, "process", error)  # type: ignore[misc]
            if then is not None:
                then()
            if ids is not None:
                emitter.name(marks, ids[i])
        self._settle()

    def _run_hot(
        self,
        hot: HotLoop,
        objects: Any,
        call: Callable[[Any, Any], Any],
        keys: Sequence[Any],
        values: Sequence[Any],
        ids: Sequence[str] | None,
    ) -> None:
        """The same where the batch runs written out: a row that raises is called again by itself, or survived."""

        def failed(place: int, error: BaseException) -> None:
            key, value = keys[place], values[place]
            self._attempt(lambda: call(key, value), key, value, "process", error)

        hot.run_careful(objects, keys, values, ids, failed)
        self._settle()

    def _outside_process(self, call: Callable[[], Any], key: Any, hook: str, value: Any = None) -> bool:
        """Run a hook beside `process`: its emits have no source row, their ids are of their own. Whether it went well."""
        marks = self.emitter.marks() if self.plan.wants_id else None
        before, self.input = self.input, 0 if len(self._streams) == 1 else None
        well = self._attempt(call, key, value, hook)
        self.input = before
        if marks is not None:
            # Replicas of a unit put out the same at their ends: named by key, it is known to be.
            own = f"{self.plan.original}:{hook[0]}{key!r}" if self.plan.replicas > 1 else None
            self.emitter.name(marks, own or f"{self.context.sub_unit}:{hook[0]}{self.ordinal}")
            self.ordinal += 1
        self._settle()
        return well

    # calls beside process ------------------------------------------------------------------------

    def ticking(self, now: float) -> Iterator[None]:
        """Call `tick` on every object, one a step, so that what they emit can be sent in between."""
        self._outside_process(lambda: self.object.tick(now), None, "tick")
        yield

    def finishing(self) -> Iterator[None]:
        """Call `finish` on every object, one a step."""
        if self.timer_service is not None:
            yield from self.timer_service.finishing()
        self.context.finish_for("drained")
        self._outside_process(self.object.finish, None, "finish")
        yield

    def close(self) -> None:
        """Call `close` on every object."""
        raise NotImplementedError

    def sweeping(self, now: float, before: Callable[[Collection[Name]], None]) -> Iterator[None]:
        """Put away or expire what is idle, some names a step; `before` is told of names whose state changes by it."""
        return iter(())

    @property
    def next_sweep(self) -> float | None:
        """Return the time at which `sweeping` is due; None: never."""
        return None

    @property
    def states(self) -> int:
        """Return the number of objects that hold state that a crash would lose."""
        return 0

    def reload(self, keys: Sequence[Any]) -> None:
        """Put the state of these keys through bytes, as a move would: what breaks by it breaks at once. Raises UserError."""
        try:
            self.state.reload(keys)
        except StateError as error:
            raise UserError(str(error)) from error

    def order_by_key(self) -> None:
        """From now on hooks of many elements are called in an order that follows from their keys, not from what was here before."""

    def _silent(self, call: Callable[[], Any], what: str) -> Any:
        """Call what may not emit."""
        before = self.emitter.rows()
        try:
            made = call()
        except BaseException as error:
            # It comes out of the tuple for which the object was made, and is not the fault of `process`.
            say_hook(error, what)
            raise
        if self.emitter.rows() != before:
            raise RuntimeError(f"unit {self.plan.name!r} emitted in {what}; emit in process, tick or finish")
        return made

    def _lack_times(self, input: int, values: Sequence[Any]) -> bool:
        """Return whether one of these has no time though timers of the bolt go by it: then rows are looked at one by one."""
        time = self.plan.timer_times[input] if self.plan.timer_times else None
        return time is not None and times_at_once(time, values, None) is None

    def _timed(self, input: int, process: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        """Return what processes a row of an input behind asking for its time, where that is to be had."""
        times = self.plan.times or self.plan.timer_times
        time = times[input] if times else None
        return process if self.timer_service is None or time is None else self.timer_service.timed(time, process)

    def _members(self) -> dict[str, Any]:
        """Attributes of the objects' class besides `emit` and `context`."""
        return {} if self.timer_service is None else self.timer_service.members()

    def _share(self, element: Any) -> None:
        """Have the first object open what all of them share."""
        if defines(type(element), "open_shared"):
            self.context.share(self._silent(lambda: element.open_shared(self.context), "open_shared"))
            self._sharer = element
        self._shared = True

    def share_early(self) -> None:
        """Open what all objects share before there is one, so that no tuple waits for it.

        What fails is tried again with the first object, and is an error of the tuple for which that is made.
        """
        cls = self._cls
        if self._shared or cls is None or not defines(cls, "open_shared") or is_async(cls.open_shared):
            return
        try:
            self._share(self._silent(self._make, "__init__"))
        except STOPPING:
            raise
        except BaseException:
            return

    #: the first object has been asked; the one that has something to close
    _shared = False
    _sharer: Any = None

    def close_shared(self) -> None:
        """Close what all objects share; they are closed."""
        sharer, self._sharer = self._sharer, None
        if sharer is None or not defines(type(sharer), "close_shared"):
            return
        try:
            sharer.close_shared(self.context.shared)
        except STOPPING:
            raise
        except BaseException as error:
            print(self._fail(error, None, "close_shared"), file=sys.stderr)

    def _opened(self, element: Any, key: Any) -> None:
        if not defines(type(element), "open"):  # there is nothing of the user's to call, for each of many keys
            return
        if not self._looks_at_open():
            began = self.context.now()
            self._silent(lambda: element.open(self.context), "open")
            if self.plan.objects != "sub-unit":
                self._long_opens.took(self.plan.name, self.context.now() - began, type(element), self.context.logger)
            return
        before = get_attributes(element)
        self._silent(lambda: element.open(self.context), "open")
        trial = self._opened_state.look(element, before)
        if trial is None:
            return
        try:
            self._silent(lambda: trial.open(self.context), "open")
        except Exception:
            return  # it asks for what came back
        try:
            self._opened_state.judge(element, trial)
        finally:
            self._close(trial)

    def _looks_at_open(self) -> bool:
        """Return whether this is the first object whose `open` is called, of a unit whose objects come back."""
        first, self._open_seen = not self._open_seen, True
        return first and self.plan.objects != "sub-unit"

    _open_seen = False

    def _close(self, element: Any) -> None:
        if type(element).close is Bolt.close:
            return
        marks = self.emitter.marks()
        try:
            element.close()
        except STOPPING:
            raise
        except BaseException as error:
            self._say_closing(error, getattr(element, "key", None))
        self.emitter.rewind(marks)

    def _say_closing(self, error: BaseException, key: Any) -> None:
        """Log the first error of `close`: there may be an object for each of a million keys."""
        if not self._close_errors:
            text = str(self._fail(error, key, "close"))
            self.context.logger.error("%s\n(further errors of close are not shown)", text)
        self._close_errors += 1

    _close_errors = 0


def defines(cls: type[Any] | None, hook: str) -> bool:
    """Return whether the user's class has this hook of its own. None: not known yet, for there has been no object."""
    return cls is not None and getattr(cls, hook) is not getattr(Bolt, hook)
