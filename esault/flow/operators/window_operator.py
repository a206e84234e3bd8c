"""One object per key and window: what the kinds of windows have in common.

It is one module of over 300 lines: opening, restoring, moving and closing a window all keep one table of open windows.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from esault.errors import EsaultError, StateError
from esault.flow.operators.derived_class import by_stream, maker_of_many
from esault.flow.operators.element_state import pack_state, put_state
from esault.flow.operators.elements import Elements
from esault.flow.operators.open_windows import Bounds
from esault.flow.operators.operator import STOPPING, Operator, defines
from esault.flow.operators.operator_parameters import OperatorParameters
from esault.flow.operators.operator_state import OperatorState
from esault.flow.operators.user_error import UserError, say_hook
from esault.flow.watermark.clock import END_OF_TIME, as_time, no_time
from esault.flow.watermark.levels import Levels
from esault.flow.watermark.timers import Timers
from esault.routing.many_keys import names_of
from esault.routing.ring import Name, canonical
from esault.topology.join import Join
from esault.topology.window import Window
from esault.topology.windowing import LATE

__all__ = ["NoTime", "WindowOperator", "WindowsOfKey"]


#: seconds since the epoch, in the year 5138: what comes later is counted in something smaller than seconds
FAR = 1e11
#: from what time on it is counted in what, and how many of them are a second
_SMALLER = ((1e17, "nanoseconds", 10**9), (1e14, "microseconds", 10**6), (FAR, "milliseconds", 1000))


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

    bounds: Bounds

    def __init__(self, parameters: OperatorParameters) -> None:
        super().__init__(parameters)
        plan = self.plan
        assert plan.window is not None
        assert plan.factory is not None
        self._make, self._cls = maker_of_many(plan.factory, self.emitter, {"context": self.context, **self._members()})
        self._by_stream: bool | None = None if self._cls is None else by_stream(self._cls)
        self._tried_state = False
        # CPython loads attributes of an object that has more than 30 a little slower: 5 % of a row's way through here.
        self.times = plan.window.times
        #: times beyond this one are not believed in the batch that is processed; None: all are
        self.latest: float | None = None
        self.levels = Levels()
        self.timers = Timers()
        self._made = False
        #: where it would show that making an object emitted; None where there is more to making one than its class
        self._columns: tuple[list[Any], list[Any]] | None = None
        #: how its objects end: whether they have a `finish` or a `close` of their own, once there is one
        self._finishes = self._closes = True
        #: nothing is survived, and no two replicas must name what `finish` emits alike
        self._simply = not self._careful and plan.replicas == 1
        self.context.finish_for("window")
        self._own_name = f"{self.context.sub_unit}:f"
        self.elements = Elements(
            plan.name, self._object, lambda windows, key: None, self._close_all, self.codec, bool(plan.tick_every)
        )
        self.state = OperatorState(
            plan,
            self.codec,
            self.elements,
            self._silent,
            levels=self.levels,
            levels_move=bool(self.times) or plan.window.by_clock,
        )
        self.state.nested = True
        self.state.came = self._key_came

    # for the kinds -----------------------------------------------------------------------------

    def add_row(self, windows: Any, stream: str, time: Callable[[Any], float] | None, value: Any) -> None:
        """A row of a key into the windows it belongs to."""
        raise NotImplementedError

    def row_added(self) -> None:
        """A row was given to `add_row` under the policy, as often as that says, whatever became of it."""

    def due_of(self, windows: Any, index: int) -> float:
        """Return the time at which something of a window is due next."""
        end: float = self.bounds[index].end
        return end

    def due_of_state(self, state: Any) -> Sequence[float]:
        """Return the times at which something of a key with this state is due."""
        return ()

    def close_due(self, name: Name, windows: Any, until: float) -> None:
        """Close what is due by then; nothing may be, any more."""

    # a row that fails in one of several windows --------------------------------------------------

    def _states(self, windows: Any, indices: Sequence[int]) -> dict[int, bytes | None]:
        """The windows that are open, of these, with the state of each; None where it cannot fail. Raises StateError."""
        # A join holds many rows, and calls no user code.
        opened = [(index, windows[index]) for index in indices if index in windows]
        return {index: None if isinstance(element, Join) else self.packed(element) for index, element in opened}

    def _put_back(self, windows: Any, indices: Sequence[int], before: Mapping[int, bytes | None]) -> None:
        """A row that failed in one of its windows is in none of them, and has opened none. Raises StateError."""
        for index in indices:
            if index not in before:
                self._leave(windows, index)
                continue
            state = before[index]
            if state is None:
                continue
            self._close(windows[index])
            try:
                windows[index] = self.restored(windows.key, self.bounds[index], state)
            except STOPPING:
                raise
            except BaseException as error:
                text = self._fail(error, windows.key, "__setstate__")
                raise StateError(
                    f"{text}\n(a tuple had failed, and its windows were to be as they were before it)"
                ) from error

    def _leave(self, windows: Any, index: int) -> None:
        """Take a window away that has had no row, if it was opened."""
        element = windows.pop(index, None)
        if element is not None:
            due = self.due_of(windows, index)
            if all(self.due_of(windows, other) != due for other in windows):
                self.timers.remove(due, canonical(windows.key))
            self._close(element)

    # objects -----------------------------------------------------------------------------------

    def new(self, key: Any, window: Window) -> Any:
        """An object for this key and window, opened."""
        if self.times and window.start > FAR:
            self.look_at_unit(window.start)
        if self._columns is not None:  # there may be one of these for each row
            first, second = self._columns
            before = len(first) + len(second)
            try:
                element = self._make()
            except BaseException as error:
                say_hook(error, "__init__")
                raise
            if len(first) + len(second) == before:
                element.key = key
                element.window = window
                return element
            # It emitted, which is refused below.
        element = self._object()
        if not self._made:
            self._made = True
            for name in ("key", "window"):
                if hasattr(element, name):
                    raise EsaultError(
                        f"unit {self.plan.name!r}: {type(element).__name__} sets self.{name}, which is the engine's; use another name"
                    )
            if isinstance(self._make, (type, functools.partial)) and not defines(self._cls, "open"):
                self._columns = self.emitter.two_columns
        element.key = key
        element.window = window
        self._opened(element, key)
        return element

    def _object(self) -> Any:
        element = self._silent(self._make, "__init__")
        if self._cls is None:
            self._cls = type(element)
            self._by_stream = by_stream(self._cls)
        if not self._shared:
            self._share(element)
        if not self._made:
            self._finishes, self._closes = defines(self._cls, "finish"), defines(self._cls, "close")
        return element

    def restored(self, key: Any, window: Window, state: bytes) -> Any:
        """The same with the state that it had, opened after it has it."""
        element = self._object()
        element.key = key
        element.window = window
        put_state(self.plan.name, element, state, self.codec)
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
        if not self._finishes:
            pass
        elif self._simply:  # what `_outside_process` does where nothing is survived: it is called for millions
            try:
                element.finish()
            except STOPPING:
                raise
            except BaseException as error:
                raise self._raised(error, element.key, "finish") from error
            if self.plan.wants_id:
                self._name(f"{self._own_name}{self.ordinal}")
                self.ordinal += 1
        else:
            self._outside_process(element.finish, element.key, "finish")
        if self._closes:
            self._close(element)

    def _close_all(self, windows: Any) -> None:
        for element in windows.objects():
            self._close(element)

    # rows --------------------------------------------------------------------------------------

    def run(self, input: int, keys: Sequence[Any], values: Sequence[Any], ids: Sequence[str] | None) -> None:
        """Row by row, under the policy; kinds have a faster way for what is common."""
        elements, stream, add_row = self.elements, self._streams[input], self.add_row
        self.latest = self.latest_of(input)
        time = self.times[input] if self.times else None
        if self._careful:
            self._run_careful(
                lambda key, value: add_row(elements[key], stream, time, value), keys, values, ids, self.row_added
            )
        else:
            key: Any = None
            try:
                for i, (key, value) in enumerate(zip(keys, values)):
                    add_row(elements[key], stream, time, value)
                    if ids is not None:
                        self._name(ids[i])
            except (*STOPPING, UserError):
                raise
            except BaseException as error:
                raise self._raised(error, key) from error
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
        seconds = as_time(at)
        if seconds is None:
            raise NoTime(f"time gave {no_time(at)}")
        return seconds

    def _because(self, error: BaseException, time: Callable[[Any], float], key: Any, value: Any) -> UserError:
        """Return the error: of the user's object, or of the time of the value."""
        try:
            self.time_of(time, value)
        except NoTime as no_time:
            return self._fail(no_time, key, "time")
        return self._raised(error, key)

    def latest_of(self, input: int) -> float | None:
        """The last time that is believed now, of rows of this input; None: all are."""
        assert self.plan.window is not None
        ahead = self.plan.window.ahead[input] if self.times else None
        return None if ahead is None else self.context.now() + ahead

    _looked_at_unit = False

    def look_at_unit(self, at: float) -> None:
        """Say, once, if times are counted in something smaller than seconds."""
        if at <= FAR or self._looked_at_unit:
            return
        self._looked_at_unit = True
        of, second = next((of, second) for first, of, second in _SMALLER if at > first)
        self.context.logger.warning(
            f"unit {self.plan.name!r}: times are about {at:.0f}, which in seconds since the epoch is thousands of years ahead; they look "
            f"like {of}: write time=lambda value: value['at'] / {second}, else windows are {second:,} times too short"
        )

    def is_late(self, key: Any, value: Any) -> None:
        """The row's window has closed."""
        self.late += 1
        out = self.emitter.outs.get(LATE)
        if out is not None:
            out.keys.append(key[0] if self.plan.in_parts else key)
            out.values.append(value)

    def level(self, key: Any) -> float:
        """Up to when windows of this key were closed."""
        levels = self.levels
        return levels.of(key) if levels.others else levels.own

    def try_state(self, keys: Sequence[Any]) -> None:
        """Save the first object once, so that a state that cannot move is found now and not when it must."""
        if self._tried_state:
            return
        for key in keys[:1]:
            windows = self.elements.present(canonical(key))
            for element in windows.objects() if windows is not None else ():
                self._tried_state = True
                try:
                    put_state(self.plan.name, element, self.packed(element), self.codec)
                    self._opened_state.try_again(element)
                except StateError as error:
                    raise UserError(str(error)) from error
                return

    # closing -----------------------------------------------------------------------------------

    def advance(self, watermark: float) -> None:
        """No row before this time is expected: what is due by then is to be closed."""
        self.levels.own = max(self.levels.own, watermark)
        if watermark == END_OF_TIME:
            self.context.finish_for("drained")  # they are closed by the end of the input, and not by time
        if self.levels.others:
            self.levels.catch_up()

    def order_by_key(self) -> None:
        self.elements.ordered = self.timers.ordered = True

    def close_some(self, keys: int, rows: int, before: Callable[[tuple[Name]], None] | None) -> bool:
        """Close what is due, of so many keys at most, until so many rows are out; whether there may be more.

        `before` is told the name of each key first.
        """
        elements, columns = self.elements, self.emitter.two_columns
        for due, name in self.timers.drain(self.levels.own):
            windows = elements.get(name) or elements.wake(name)
            if windows is not None:
                if before is not None:
                    before((name,))
                self.close_due(name, windows, due)
                out = self.emitter.rows() if columns is None else len(columns[0]) + len(columns[1])
                keys -= 1
                if out >= rows or not keys:
                    return True
        return False

    def catch_up(self, keys: Sequence[Any]) -> None:
        """Close what is due of these keys, whose rows come behind the watermark that makes it due.

        Those who wait for what comes out of others have not let it close yet, and what becomes of a row must not depend on them.
        """
        for name in dict.fromkeys(names_of(keys)):
            windows = self.elements.wake(name)
            if windows is not None:
                self.close_due(name, windows, self.level(windows.key))

    def finishing(self) -> Iterator[None]:
        self.context.finish_for("drained")
        try:
            yield from self._finishing_windows()
        finally:
            self.context.finish_for("window")  # those of another operator go on to close by time

    def _finishing_windows(self) -> Iterator[None]:
        self.advance(END_OF_TIME)
        if self._nothing_at_the_end:
            self.close()
            self.elements.forget_all()
            return
        while self.close_some(1, 1, None):
            yield

    @property
    def _nothing_at_the_end(self) -> bool:
        """Return whether nothing is called when all windows are closed, of which there may be millions."""
        for name in self.elements.names() if self._cls is None else ():
            self.elements.wake(name)  # one object speaks for all
            if self._cls is not None:
                break
        return not defines(self._cls, "finish")

    # calls beside process ----------------------------------------------------------------------

    def ticking(self, now: float) -> Iterator[None]:
        yield from self.elements.wake_arrived()
        for name, windows in self.elements.live():
            for element in windows.objects():
                if self.elements.holds(name, windows) and any(element is each for each in windows.objects()):
                    self._outside_process(lambda e=element: e.tick(now), element.key, "tick")  # type: ignore[misc]
                    yield

    def close(self) -> None:
        if defines(self._cls, "close"):
            for _, windows in self.elements.live():
                self._close_all(windows)

    @property
    def states(self) -> int:
        return self.elements.count

    # moving ------------------------------------------------------------------------------------

    def _key_came(self, name: Name, state: bytes) -> None:
        for due in self.due_of_state(self.codec.unpack(state)):
            self.timers.add(due, name)
