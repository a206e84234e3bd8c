"""Running user code: batches in, columns out.

`ElementOperator` has one object per key, `ObjectOperator` one for the sub-unit, `BatchOperator` a BatchBolt.
Each has a fast loop, and a careful one for units whose rows carry ids or whose errors are not fatal: that one
notes after each tuple what it emitted, so that ids can be given and a failed try's emits can be forgotten.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from esault.errors import StateError
from esault.flow.elements import Elements, maker, pack_state
from esault.flow.emitter import Emitter
from esault.flow.idle import IdleSweep
from esault.flow.user_error import LetterBox, UserError, traceback_of
from esault.payload.codec import Codec
from esault.routing.ring import Canonical, canonical
from esault.topology.bolt import BatchBolt, Bolt
from esault.topology.context import Context
from esault.topology.plan import UnitPlan

__all__ = ["BatchOperator", "ElementOperator", "ObjectOperator", "Operator", "operator"]

_STOPPING = (KeyboardInterrupt, GeneratorExit)


class Operator:
    """What all three have in common: emits, the error policy, ids and the calls beside `process`."""

    def __init__(
        self, plan: UnitPlan, context: Context, emitter: Emitter, codec: Codec, letters: LetterBox, now: float
    ) -> None:
        self.plan = plan
        self.context = context
        self.emitter = emitter
        self.codec = codec
        self.letters = letters
        self.errors = 0
        self.dead_letters = 0
        self._policy = plan.on_error
        #: errors are survived: emits of a failed try must be forgotten
        self._careful = plan.on_error.kind != "fail" or plan.on_error.retries > 0
        self._name = emitter.namer()
        self._streams = [i.stream for i in plan.inputs]
        self._outside = 0
        self._letters_open = False

    # errors ------------------------------------------------------------------------------------

    def _fail(self, error: BaseException, key: Any, hook: str) -> UserError:
        name = type(error).__name__
        where = f"unit {self.plan.name!r}, {hook}, key {key!r}"
        return UserError(f"{where}: {name}: {error}\n{traceback_of(error)}")

    def _attempt(self, call: Callable[[], Any], key: Any, value: Any, hook: str) -> bool:
        """Call under the unit's policy; whether it went well. Raises UserError under `fail`."""
        policy = self._policy
        marks = self.emitter.marks()
        tries = 0
        while True:
            try:
                call()
                return True
            except _STOPPING:
                raise
            except BaseException as error:
                self.emitter.rewind(marks)
                if isinstance(error, StateError):
                    raise UserError(str(error)) from error
                if tries < policy.retries:
                    tries += 1
                    continue
                if policy.kind == "fail":
                    raise self._fail(error, key, hook) from error
                self._survive(error, key, value, hook)
                return False

    def _survive(self, error: BaseException, key: Any, value: Any, hook: str) -> None:
        self.errors += 1
        if self.errors == 1:
            what = "skipped" if self._policy.kind == "skip" else f"kept in {self._policy.path}"
            text = str(self._fail(error, key, hook))
            print(f"{text}\n(the tuple is {what}; further errors of this unit are only counted)", file=sys.stderr)
        if self._policy.kind == "dead_letter":
            self.dead_letters += 1
            self._letters_open = True
            self.letters.put(
                {
                    "unit": self.plan.name,
                    "hook": hook,
                    "key": key,
                    "value": value,
                    "error": f"{type(error).__name__}: {error}",
                    "traceback": traceback_of(error),
                    "time": self.context.now(),
                }
            )

    def _settle(self) -> None:
        if self._letters_open:  # durable before the batch is acked
            self._letters_open = False
            self.letters.sync()

    # the loops ---------------------------------------------------------------------------------

    def run(self, input: int, keys: Sequence[Any], values: Sequence[Any], ids: Sequence[str] | None) -> None:
        """Process a batch; what is emitted stands in the emitter's columns. Raises UserError."""
        raise NotImplementedError

    def _run_careful(
        self,
        call: Callable[[Any, Any], Any],
        keys: Sequence[Any],
        values: Sequence[Any],
        ids: Sequence[str] | None,
    ) -> None:
        emitter = self.emitter
        for i, key in enumerate(keys):
            value = values[i]
            marks = emitter.marks()
            self._attempt(lambda k=key, v=value: call(k, v), key, value, "process")  # type: ignore[misc]
            if ids is not None:
                emitter.name(marks, ids[i])
        self._settle()

    def _outside_process(self, call: Callable[[], Any], key: Any, hook: str) -> None:
        """Run a hook beside `process`: its emits have no source row, their ids are of their own."""
        marks = self.emitter.marks()
        self._attempt(call, key, None, hook)
        if self.plan.wants_id:
            self.emitter.name(marks, f"{self.context.sub_unit}:{hook[0]}{self._outside}")
            self._outside += 1
        self._settle()

    # calls beside process ------------------------------------------------------------------------

    def ticking(self, now: float) -> Iterator[None]:
        """Call `tick` on every object, one a step, so that what they emit can be sent in between."""
        raise NotImplementedError

    def finishing(self) -> Iterator[None]:
        """Call `finish` on every object, one a step."""
        raise NotImplementedError

    def close(self) -> None:
        """Call `close` on every object."""
        raise NotImplementedError

    def sweep(self, now: float) -> bool:
        """Put away or expire what is idle; whether anything was emitted."""
        return False

    @property
    def next_sweep(self) -> float | None:
        """When `sweep` is due; None: never."""
        return None

    @property
    def states(self) -> int:
        """How many objects hold state that a crash would lose."""
        return 0

    # moving: what `handover.Store` asks for; nothing moves where an object stands for a sub-unit -----

    def names(self) -> list[Any]:
        """Names of all elements."""
        return []

    def key_of(self, name: Any) -> Any:
        """The key of an element as it travels."""
        return name

    def name_of(self, key: Any) -> Any:
        """The name of the element of this key."""
        return key

    def give(self, name: Any) -> bytes | None:
        """Take an element out, closed; its packed state, or None if there is none."""
        return None

    def get(self, key: Any, state: bytes) -> None:
        """Take a key over, with its state."""

    def _silent(self, call: Callable[[], Any], what: str) -> Any:
        """Call what may not emit."""
        before = self.emitter.rows()
        made = call()
        if self.emitter.rows() != before:
            raise RuntimeError(f"unit {self.plan.name!r} emitted in {what}; emit in process, tick or finish")
        return made

    def _opened(self, element: Any, key: Any) -> None:
        if type(element).open is not Bolt.open:  # else there is nothing of the user's to call, for each of many keys
            self._silent(lambda: element.open(self.context), "open")

    def _close(self, element: Any) -> None:
        if type(element).close is Bolt.close:
            return
        marks = self.emitter.marks()
        try:
            element.close()
        except _STOPPING:
            raise
        except BaseException as error:
            print(str(self._fail(error, getattr(element, "key", None), "close")), file=sys.stderr)
        self.emitter.rewind(marks)


class ElementOperator(Operator):
    """One object per key."""

    def __init__(
        self, plan: UnitPlan, context: Context, emitter: Emitter, codec: Codec, letters: LetterBox, now: float
    ) -> None:
        super().__init__(plan, context, emitter, codec, letters, now)
        assert plan.factory is not None
        members = {"emit": emitter.function(), "context": context}
        make, cls = maker(plan.factory, members, Bolt)
        self.elements = Elements(plan.name, lambda: self._silent(make, "__init__"), self._opened, self._close, codec)
        self._partial = plan.objects == "partial_key"
        self._by_stream: bool | None = None if cls is None else _by_stream(cls, plan)
        self._tried_state = False
        self._idle = IdleSweep(plan.idle_after, now) if plan.idle_after else None
        self._expiry = IdleSweep(plan.expire_after, now, generations=4) if plan.expire_after else None
        self._used: set[Any] | None = set() if self._idle or self._expiry else None
        self._used_idle: set[Any] = set()
        self._used_expiry: set[Any] = set()

        def trusted() -> None:
            members["emit"] = emitter.function()
            if cls is not None:
                cls.emit = members["emit"]

        emitter.on_trusted = trusted

    def run(self, input: int, keys: Sequence[Any], values: Sequence[Any], ids: Sequence[str] | None) -> None:
        elements = self.elements
        if self._careful or self._partial or self._by_stream is not False:
            stream = self._streams[input]
            self._run_careful(lambda key, value: self._process(stream, key, value), keys, values, ids)
        else:
            key: Any = None
            try:
                if ids is None:
                    for key, value in zip(keys, values):
                        elements[key].process(key, value)
                else:
                    name = self._name
                    for key, value, id in zip(keys, values, ids):
                        elements[key].process(key, value)
                        name(id)
            except _STOPPING:
                raise
            except StateError as error:
                raise UserError(str(error)) from error
            except BaseException as error:
                raise self._fail(error, key, "process") from error
        if self._used is not None:
            self._used.update(keys)
        if not self._tried_state:
            self._try_state(keys)

    def names(self) -> list[Any]:
        return list(self.elements.names())

    def key_of(self, name: Any) -> Any:
        return name.key if isinstance(name, Canonical) else name

    def name_of(self, key: Any) -> Any:
        return canonical(key)

    def give(self, name: Any) -> bytes | None:
        return self.elements.take_state(name)

    def get(self, key: Any, state: bytes) -> None:
        self.elements.put_state(key, state)

    def _process(self, stream: str, key: Any, value: Any) -> None:
        element = self.elements[key]
        if self._partial:
            key = key[0]
        if self._by_stream is None:
            self._by_stream = _by_stream(type(element), self.plan)
        if self._by_stream:
            element.process_stream(stream, key, value)
        else:
            element.process(key, value)

    def _opened(self, element: Any, key: Any) -> None:
        if self._partial:
            element.key = key[0]
        super()._opened(element, key)

    def _try_state(self, keys: Sequence[Any]) -> None:
        """Save the first object once, so that a state that cannot move is found now and not when it must."""
        self._tried_state = True
        for key in keys[:1]:
            element = self.elements[key]
            try:
                element.__setstate__(self.codec.unpack(pack_state(self.plan.name, element, self.codec)))
            except StateError as error:
                raise UserError(str(error)) from error

    def _each(self) -> Iterator[tuple[Any, Any]]:
        return self.elements.live()

    def ticking(self, now: float) -> Iterator[None]:
        for _, element in self._each():
            self._outside_process(lambda e=element: e.tick(now), element.key, "tick")  # type: ignore[misc]
            yield

    def finishing(self) -> Iterator[None]:
        self.elements.wake_all()
        for _, element in self._each():
            self._outside_process(element.finish, element.key, "finish")
            yield

    def close(self) -> None:
        for _, element in self._each():
            self._close(element)

    @property
    def next_sweep(self) -> float | None:
        times = [sweep.next_at for sweep in (self._idle, self._expiry) if sweep is not None]
        return min(times) if times else None

    def sweep(self, now: float) -> bool:
        if self._used is None:
            return False
        emitted = False
        # Look-alikes (1 and True) were used if either was: the set cannot tell them apart, and living longer is safe.
        used = self._used | {n for n, _ in self._each() if isinstance(n, Canonical) and n.key in self._used}
        self._used.clear()
        # Each sweep needs all keys that were used since its own last one.
        self._used_idle |= used
        self._used_expiry |= used
        if self._idle is not None and self._idle.due(now):
            for name in self._idle.sweep(now, [n for n, _ in self._each()], self._used_idle):
                self.elements.put_away(name)
        if self._expiry is not None and self._expiry.due(now):
            for name in self._expiry.sweep(now, list(self.elements.names()), self._used_expiry):
                element = self.elements.wake(name)
                if element is not None:
                    self._outside_process(element.finish, element.key, "finish")
                    self._close(element)
                    self.elements.forget(name)
                    emitted = True
        return emitted

    @property
    def states(self) -> int:
        # One element speaks for all: this is asked several times a second, however many there are.
        some = next(iter(self.elements.values()), None)
        return 0 if some is not None and not some.__getstate__() else self.elements.count


class ObjectOperator(Operator):
    """One object for the whole sub-unit, or for the whole unit."""

    def __init__(
        self, plan: UnitPlan, context: Context, emitter: Emitter, codec: Codec, letters: LetterBox, now: float
    ) -> None:
        super().__init__(plan, context, emitter, codec, letters, now)
        assert plan.factory is not None
        members = {"emit": emitter.function(), "context": context}
        make, _ = maker(plan.factory, members, Bolt)
        try:
            self.object = self._silent(make, "__init__")
            self.object.key = None
            self._opened(self.object, None)
        except _STOPPING:
            raise
        except BaseException as error:
            raise self._fail(error, None, "open") from error
        self._by_stream = _by_stream(type(self.object), plan)
        self._tried_state = False
        #: the one object of the unit went to another sub-unit
        self._given = False

        def trusted() -> None:
            type(self.object).emit = emitter.function()

        emitter.on_trusted = trusted

    def run(self, input: int, keys: Sequence[Any], values: Sequence[Any], ids: Sequence[str] | None) -> None:
        if self._by_stream:
            process_stream, stream = self.object.process_stream, self._streams[input]
            self._run_careful(lambda key, value: process_stream(stream, key, value), keys, values, ids)
        elif self._careful:
            self._run_careful(self.object.process, keys, values, ids)
        else:
            process = self.object.process
            key: Any = None
            try:
                if ids is None:
                    for key, value in zip(keys, values):
                        process(key, value)
                else:
                    name = self._name
                    for key, value, id in zip(keys, values, ids):
                        process(key, value)
                        name(id)
            except _STOPPING:
                raise
            except BaseException as error:
                raise self._fail(error, key, "process") from error
        if not self._tried_state:
            self._tried_state = True
            try:
                pack_state(self.plan.name, self.object, self.codec)
            except StateError as error:
                raise UserError(str(error)) from error

    def ticking(self, now: float) -> Iterator[None]:
        self._outside_process(lambda: self.object.tick(now), None, "tick")
        yield

    def finishing(self) -> Iterator[None]:
        self._outside_process(self.object.finish, None, "finish")
        yield

    def close(self) -> None:
        if not self._given:
            self._close(self.object)

    def names(self) -> list[Any]:
        return [None] if self.plan.objects == "unit" and not self._given else []

    def give(self, name: Any) -> bytes | None:
        if self._given or self.plan.objects != "unit":
            return None
        self._given = True
        state = pack_state(self.plan.name, self.object, self.codec)
        self._close(self.object)
        return state

    def get(self, key: Any, state: bytes) -> None:
        self.object.__setstate__(self.codec.unpack(state))

    @property
    def states(self) -> int:
        return 1 if self.object.__getstate__() else 0


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
        except _STOPPING:
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

    @property
    def states(self) -> int:
        return len(self.object.keyed)


def _by_stream(cls: type[Any], plan: UnitPlan) -> bool:
    """Whether `process_stream` is called in place of `process`."""
    return cls.process_stream is not Bolt.process_stream


def operator(
    plan: UnitPlan, context: Context, emitter: Emitter, codec: Codec, letters: LetterBox, now: float
) -> Operator:
    """The operator that fits the plan of a bolt."""
    kind = BatchOperator if plan.batch else ElementOperator if plan.objects.endswith("key") else ObjectOperator
    return kind(plan, context, emitter, codec, letters, now)
