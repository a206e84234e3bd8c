"""One object per key and window: what the kinds of windows have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from esault.errors import EsaultError, FrameError, StateError
from esault.flow.elements import Elements, maker, pack_state
from esault.flow.emitter import Emitter
from esault.flow.operators.operator import STOPPING, Operator, by_stream
from esault.flow.user_error import LetterBox, UserError
from esault.flow.watermark.clock import END_OF_TIME, is_time
from esault.flow.watermark.levels import Levels
from esault.flow.watermark.timers import Timers
from esault.payload.codec import Codec
from esault.routing.ring import Canonical, canonical
from esault.topology.bolt import Bolt
from esault.topology.context import Context
from esault.topology.plan import UnitPlan
from esault.topology.window import Window
from esault.topology.windowing import LATE

__all__ = ["NOTHING", "NoTime", "WindowOperator", "WindowsOfKey"]


class NoTime(Exception):
    """A value has no time."""


class WindowsOfKey(Protocol):
    """All windows of a key, which move and are saved together."""

    key: Any

    def objects(self) -> list[Any]:
        """The user's objects that there are."""
        ...


class WindowOperator(Operator):
    """Base of those for the kinds of windows. `elements` holds, for each key, its windows."""

    def __init__(
        self, plan: UnitPlan, context: Context, emitter: Emitter, codec: Codec, letters: LetterBox, now: float
    ) -> None:
        super().__init__(plan, context, emitter, codec, letters, now)
        assert plan.factory is not None and plan.window is not None
        self.times = plan.window.times
        self.ahead = plan.window.ahead
        self.levels = Levels()
        self.timers = Timers()
        members = {"emit": emitter.function(), "context": context}
        self._make, cls = maker(plan.factory, members, Bolt)
        self._by_stream: bool | None = None if cls is None else by_stream(cls, plan)
        self._made = False
        self._tried_state = False
        self._arrived: set[Any] = set()
        self._late_out = emitter.outs.get(LATE)
        self.elements = Elements(plan.name, self.windows_of_key, lambda windows, key: None, self._close_all, codec)

        def trusted() -> None:
            members["emit"] = emitter.function()
            if cls is not None:
                cls.emit = members["emit"]

        emitter.on_trusted = trusted

    # for the kinds -----------------------------------------------------------------------------

    def windows_of_key(self) -> Any:
        """An empty set of windows, for a key that is new here."""
        raise NotImplementedError

    def take(self, windows: Any, stream: str, time: Callable[[Any], float] | None, value: Any) -> None:
        """A row of a key into the windows it belongs to."""
        raise NotImplementedError

    def due_of_state(self, state: Any) -> Sequence[float]:
        """When something of a key with this state is due."""
        return ()

    def close_due(self, name: Any, windows: Any, until: float) -> None:
        """Close what is due by then; nothing may be, any more."""

    # objects -----------------------------------------------------------------------------------

    def new(self, key: Any, window: Window) -> Any:
        """An object for this key and window, opened."""
        element = self._silent(self._make, "__init__")
        if not self._made:
            self._made = True
            for name in ("key", "window"):
                if hasattr(element, name):
                    raise EsaultError(
                        f"unit {self.plan.name!r}: {type(element).__name__} sets self.{name}, which is the engine's; use another name"
                    )
            if self._by_stream is None:
                self._by_stream = by_stream(type(element), self.plan)
        element.key = key
        element.window = window
        self._opened(element, key)
        return element

    def restored(self, key: Any, window: Window, state: bytes) -> Any:
        """The same with the state that it had, opened after it has it."""
        element = self._silent(self._make, "__init__")
        element.key = key
        element.window = window
        element.__setstate__(self.codec.unpack(state))
        if self._by_stream is None:
            self._by_stream = by_stream(type(element), self.plan)
        self._opened(element, key)
        return element

    def packed(self, element: Any) -> bytes:
        """The state of an object. Raises StateError."""
        return pack_state(self.plan.name, element, self.codec)

    def call(self, element: Any, stream: str, key: Any, value: Any) -> None:
        """The user's hook for a row."""
        if self._by_stream:
            element.process_stream(stream, key, value)
        else:
            element.process(key, value)

    def finish(self, element: Any) -> None:
        """A window has closed, and its object goes."""
        self._outside_process(element.finish, element.key, "finish")
        self._close(element)

    def _close_all(self, windows: Any) -> None:
        for element in windows.objects():
            self._close(element)

    # rows --------------------------------------------------------------------------------------

    def run(self, input: int, keys: Sequence[Any], values: Sequence[Any], ids: Sequence[str] | None) -> None:
        """Row by row, under the policy; kinds have a faster way for what is common."""
        elements, stream, take = self.elements, self._streams[input], self.take
        time = self.times[input] if self.times else None
        if self._careful:
            self._run_careful(lambda key, value: take(elements[key], stream, time, value), keys, values, ids)
        else:
            key: Any = None
            try:
                for i, (key, value) in enumerate(zip(keys, values)):
                    take(elements[key], stream, time, value)
                    if ids is not None:
                        self._name(ids[i])
            except STOPPING:
                raise
            except StateError as error:
                raise UserError(str(error)) from error
            except BaseException as error:
                raise self._fail(error, key, "process") from error
        self.try_state(keys)

    def _fail(self, error: BaseException, key: Any, hook: str) -> UserError:
        if isinstance(error, NoTime):
            error, hook = error.__cause__ or error, "time"
        return super()._fail(error, key, hook)

    def time_of(self, time: Callable[[Any], float], value: Any) -> float:
        """The value's time. Raises NoTime."""
        try:
            at = time(value)
        except STOPPING:
            raise
        except BaseException as error:
            raise NoTime(f"time raised {type(error).__name__}: {error}") from error
        if not is_time(at):
            raise NoTime(
                f"time gave {at!r} ({type(at).__name__}), which is no finite number of seconds since the epoch"
            )
        return at

    def incredible(self, at: float) -> bool:
        """Whether a time is too far ahead of the clock to be believed."""
        return self.ahead is not None and at > self.context.now() + self.ahead

    def is_late(self, key: Any, value: Any) -> None:
        """The row's window has closed."""
        self.late += 1
        out = self._late_out
        if out is not None:
            out.keys.append(key)
            out.values.append(value)

    def level(self, key: Any) -> float:
        """Up to when windows of this key were closed."""
        return self.levels.of(key) if self.levels else self.levels.own

    def try_state(self, keys: Sequence[Any]) -> None:
        """Save the first object once, so that a state that cannot move is found now and not when it must."""
        if self._tried_state:
            return
        for key in keys[:1]:
            windows = self.elements.get(key)
            for element in windows.objects() if windows is not None else ():
                self._tried_state = True
                try:
                    element.__setstate__(self.codec.unpack(self.packed(element)))
                except StateError as error:
                    raise UserError(str(error)) from error
                return

    # closing -----------------------------------------------------------------------------------

    def advance(self, watermark: float) -> None:
        """No row before this time is expected: what is due by then is to be closed."""
        self.levels.own = max(self.levels.own, watermark)
        if self.levels:
            self.levels.catch_up()

    def due(self) -> Any:
        """The key that has something to close, the earliest first; NOTHING if none has."""
        while (found := self.timers.next(self.levels.own)) is not None:
            name = found[1]
            windows = self.elements.wake(name)
            if windows is not None:
                return windows.key
            self.timers.remove(*found)  # it has moved
        return NOTHING

    def close_next(self) -> None:
        """Close what `due` said."""
        found = self.timers.next(self.levels.own)
        if found is not None:
            self._close_found(*found)

    def _close_found(self, due: float, name: Any) -> None:
        self.timers.remove(due, name)
        windows = self.elements.wake(name)
        if windows is not None:
            self.close_due(name, windows, due)

    def finishing(self) -> Iterator[None]:
        self.advance(END_OF_TIME)
        while (found := self.timers.next(END_OF_TIME)) is not None:
            self._close_found(*found)
            yield

    # calls beside process ----------------------------------------------------------------------

    def ticking(self, now: float) -> Iterator[None]:
        while self._arrived:  # they were at work where they came from
            self.elements.wake(self._arrived.pop())
            yield
        for name, windows in self.elements.live():
            for element in windows.objects():
                if self.elements.holds(name, windows) and any(element is each for each in windows.objects()):
                    self._outside_process(lambda e=element: e.tick(now), element.key, "tick")  # type: ignore[misc]
                    yield

    def close(self) -> None:
        for _, windows in self.elements.live():
            self._close_all(windows)

    @property
    def states(self) -> int:
        return self.elements.count

    # moving ------------------------------------------------------------------------------------

    def names(self) -> list[Any]:
        return list(self.elements.names())

    def key_of(self, name: Any) -> Any:
        return name.key if isinstance(name, Canonical) else name

    def name_of(self, key: Any) -> Any:
        return canonical(key)

    def give(self, name: Any) -> bytes | None:
        return self.elements.take_state(name)

    def get(self, key: Any, state: bytes) -> None:
        """Take a key over; under None stands up to when windows were closed, of the slowest of those it comes from."""
        if key is None:
            own = self.codec.unpack(state)
            self.levels.own = own if self._fresh else min(self.levels.own, own)
            self._fresh = False
            return
        self.elements.put_state(key, state)
        name = canonical(key)
        for due in self.due_of_state(self.codec.unpack(state)):
            self.timers.add(due, name)
        if self.plan.tick_every:
            self._arrived.add(name)

    _fresh = True

    def beside(self, ranges: Sequence[tuple[int, int]]) -> Any:
        return tuple(self.levels.cut(ranges)) if self.times else None

    def take_beside(self, said: Any) -> None:
        if type(said) is not tuple or any(
            type(each) is not tuple or [type(x) for x in each] != [int, int, float] for each in said
        ):
            raise FrameError("what is said beside rows of windows is a sequence of ranges and times")
        self.levels.take(said)

    def saved_names(self) -> list[Any]:
        return [None, *self.names()]

    def peek(self, name: Any) -> bytes | None:
        return self.codec.pack(self.levels.own) if name is None else self.elements.peek_state(name)


class _Nothing:
    def __repr__(self) -> str:
        return "NOTHING"


#: no key: None may be one
NOTHING = _Nothing()
