"""Windows of time with several results, of tuples in the order of their times, or closed by the clock.

A window has its object, and a `_Told` with what was told of it. All other windows are in `time_window_operator`, and pay for none of this.

It is one module of over 300 lines: taking a row, telling of a window and closing it keep one record of each window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from esault.errors import EsaultError
from esault.flow.operators.open_windows import Bounds, OpenWindows, owned
from esault.flow.operators.operator import STOPPING
from esault.flow.operators.operator_parameters import OperatorParameters
from esault.flow.operators.window_operator import WindowOperator
from esault.flow.watermark.clock import END_OF_TIME
from esault.flow.watermark.timers import Timers
from esault.routing.ring import Name, canonical
from esault.topology.pane import ONLY_PANE, Pane
from esault.topology.window import TimeWindow

__all__ = ["PaneOperator"]

EARLY, ON_TIME, LATE_PANE = "early", "on_time", "late"
_PLAIN = (str, bytes, int, float, bool, type(None))


class _Told:
    """Record of what was told of a window, and what is to be."""

    __slots__ = ("ended", "given", "index", "new", "number", "rows", "wake_at")

    def __init__(self) -> None:
        #: of the next pane
        self.index = 0
        #: tuples that are in no pane yet
        self.new = 0
        #: its end has been reached
        self.ended = False
        #: when the clock asks for an early pane; None: it does not
        self.wake_at: float | None = None
        #: tuples so far that waited
        self.number = 0
        #: (time, number, stream, value) of tuples that wait for the next pane
        self.rows: list[tuple[float, int, str, Any]] = []
        #: (stream, key, value) of what the last pane emitted, which the next one takes back
        self.given: list[tuple[str, Any, Any]] = []

    def state(self) -> list[Any]:
        """Return what moves: a list, which `evolved` does not look into."""
        return [self.index, self.new, self.ended, self.wake_at, self.number, self.rows, self.given]

    @classmethod
    def of(cls, state: Sequence[Any]) -> _Told:
        """Return the one whose state this is."""
        told = cls()
        told.index, told.new, told.ended, told.wake_at, told.number = state[:5]
        told.rows, told.given = [tuple(row) for row in state[5]], [tuple(row) for row in state[6]]
        return told


class _Paned(OpenWindows):
    """The open windows of a key, and what was told of each."""

    __slots__ = ("told",)

    def __init__(self) -> None:
        super().__init__()
        self.told: dict[Any, _Told] = {}

    def __missing__(self, index: Any) -> Any:
        raise KeyError(index)

    def __getstate__(self) -> Any:
        return tuple([(i, self.of.packed(element), self.told[i].state()) for i, element in self.items()])

    def __setstate__(self, state: Any) -> None:
        for index, packed, *told in state:  # windows of a unit that had one result each begin as such
            self[index] = self.of.restored(self.key, self.of.bounds[index], packed)
            self.told[index] = _Told.of(told[0]) if told else _Told()


class PaneOperator(WindowOperator):
    """See the module. By the clock `levels` hold how far that had come when windows were closed last."""

    def __init__(self, parameters: OperatorParameters) -> None:
        self.pane = ONLY_PANE
        super().__init__(parameters)
        assert self.plan.window is not None and self.plan.window.panes is not None
        assert isinstance(self.plan.window.kind, TimeWindow)
        self.kind = self.plan.window.kind
        self.bounds = Bounds(self.kind.window)
        self.panes, self.by_clock = self.plan.window.panes, self.plan.window.by_clock
        self._allowed = self.panes.allowed_lateness
        #: early panes that the clock asks for
        self.alarms = Timers()
        self.elements.make_all(owned(_Paned, self))
        #: windows of the row that is processed which have a pane now
        self._ready: list[tuple[_Paned, Any, str]] = []
        #: what `due_now` said: whether it is an early pane, when it was due, and of which key
        self._due_now: tuple[bool, float, Name] | None = None

    def _members(self) -> dict[str, Any]:
        def pane(element: Any) -> Pane:
            return self.pane

        def refuse(element: Any, value: Any) -> None:
            raise EsaultError(
                f"unit {self.plan.name!r}: {type(element).__name__} sets self.pane, which is the engine's; use another name"
            )

        return {**super()._members(), "pane": property(pane, refuse)}

    def order_by_key(self) -> None:
        super().order_by_key()
        self.alarms.ordered = True

    # rows --------------------------------------------------------------------------------------

    def run(self, input: int, keys: Sequence[Any], values: Sequence[Any], ids: Sequence[str] | None) -> None:
        if not self.by_clock and (self.levels.others or self.timers.next(self.levels.own) is not None):
            self.catch_up(keys)  # what a row finds must not depend on those who wait for what comes out of others
        super().run(input, keys, values, ids)

    def add_row(self, windows: Any, stream: str, time: Callable[[Any], float] | None, value: Any) -> None:
        self._ready = []
        key = windows.key
        level = self.level(key)
        try:
            if time is None:
                at = max(self.context.now(), level)
            else:
                at = self.time_of(time, value)
                if self.latest is not None and at > self.latest:
                    self.look_at_unit(at)
                    self.is_late(key, value)
                    return
            reach = level - self._allowed
            indices = [index for index in self.kind.indices(at) if self.bounds[index].end > reach]
            if not indices:
                self.is_late(key, value)
                return
            self._into(windows, indices, level, at, stream, value)
        finally:
            if not windows:
                self.elements.forget(canonical(key))
        if not self._careful:
            self.row_added()

    def _into(self, windows: _Paned, indices: Sequence[int], level: float, at: float, stream: str, value: Any) -> None:
        """Put a row into its windows: all of them, or none if it fails."""
        ordered = self.panes.ordered
        before: Mapping[int, bytes | None] = {}
        if self._careful and not ordered:
            before = self._states(windows, indices)
        try:
            for index in indices:
                if index not in windows:
                    self._begin(windows, index, level)
                if not ordered:
                    self.call(windows[index], stream, windows.key, value)
        except STOPPING:
            raise
        except BaseException:
            if self._careful:
                self._put_back(windows, indices, before)
            raise
        for index in indices:
            told = windows.told[index]
            told.new += 1
            if ordered:
                told.number += 1
                told.rows.append((at, told.number, stream, value))
            if told.ended or self.bounds[index].end <= level:
                self._ready.append((windows, index, LATE_PANE))
            elif told.new == self.panes.early_count:
                self._ready.append((windows, index, EARLY))
            elif self.panes.early_seconds is not None and told.wake_at is None:
                told.wake_at = self.context.now() + self.panes.early_seconds
                self.alarms.add(told.wake_at, canonical(windows.key))

    def row_added(self) -> None:
        ready, self._ready = self._ready, []
        for windows, index, kind in ready:
            self._tell(windows, index, kind, False, own=False)

    def _begin(self, windows: _Paned, index: int, level: float) -> None:
        """Open a window. One whose end has passed has no pane that is on time."""
        bounds = self.bounds[index]
        windows[index] = self.new(windows.key, bounds)
        told = windows.told[index] = _Told()
        told.ended = bounds.end <= level
        self.timers.add(self.due_of(windows, index), canonical(windows.key))

    def _leave(self, windows: Any, index: int) -> None:
        super()._leave(windows, index)
        windows.told.pop(index, None)

    # panes -------------------------------------------------------------------------------------

    def _tell(self, windows: _Paned, index: Any, kind: str, last: bool, own: bool) -> None:
        """Have a pane of a window. `own`: no row is being processed, by whose id what is emitted is named."""
        element, told = windows[index], windows.told[index]
        told.wake_at = None
        if told.rows:
            self._process_rows(element, told, own)
        told.new = 0
        pane = Pane(kind, told.index, last)
        retract, emitter = self.panes.updates == "retract", self.emitter

        def finish() -> None:
            if not retract:
                element.finish()
                return
            for stream, key, value in told.given:
                out = emitter.outs[stream]
                out.keys.append(key)
                out.values.append((value, -1))
            marks = emitter.marks()
            element.finish()
            told.given = []
            for (stream, out), mark in zip(emitter.outs.items(), marks):
                told.given += [(stream, k, self._kept(v)) for k, v in zip(out.keys[mark:], out.values[mark:])]
                out.values[mark:] = [(value, 1) for value in out.values[mark:]]

        self.pane = pane
        try:
            well = self._call(finish, windows.key, "finish", None, own)
        finally:
            self.pane = ONLY_PANE
        if well:
            told.index += 1
        if self.panes.updates == "discard" and not last:
            self._close(element)
            windows[index] = self.new(windows.key, self.bounds[index])

    def _kept(self, value: Any) -> Any:
        """The value as it is now, whatever its object does to it before the next pane."""
        return value if type(value) in _PLAIN else self.codec.unpack(self.codec.pack_value(value))

    def _process_rows(self, element: Any, told: _Told, own: bool) -> None:
        rows, told.rows = sorted(told.rows, key=lambda row: row[:2]), []
        for _, _, stream, value in rows:
            self._call(
                lambda s=stream, v=value: self.call(element, s, element.key, v),  # type: ignore[misc]
                element.key,
                "process",
                value,
                own,
            )

    def _call(self, call: Callable[[], None], key: Any, hook: str, value: Any, own: bool) -> bool:
        return self._outside_process(call, key, hook, value) if own else self._attempt(call, key, value, hook)

    # ends --------------------------------------------------------------------------------------

    def due_of(self, windows: Any, index: int) -> float:
        end: float = self.bounds[index].end
        return end + self._allowed if windows.told[index].ended else end

    def due_of_state(self, state: Any) -> Sequence[float]:
        ends = [(self.bounds[index].end, bool(told) and told[0][2]) for index, _, *told in state]
        return [end + self._allowed if ended else end for end, ended in ends]

    def close_due(self, name: Any, windows: Any, until: float) -> None:
        allowed = self._allowed
        bounds = self.bounds
        for index in sorted((each for each in windows if bounds[each].end <= until), key=bounds.__getitem__):
            end, told = self.bounds[index].end, windows.told[index]
            if not told.ended:
                told.ended = True
                self._tell(windows, index, ON_TIME, not allowed, own=True)
                if allowed:
                    self.timers.add(end + allowed, name)
            elif end + allowed > until:
                continue
            if end + allowed <= until:
                if allowed and self.panes.last_pane:
                    self._tell(windows, index, LATE_PANE, True, own=True)
                windows.told.pop(index)
                self._close(windows.pop(index))
        if not windows:
            self.elements.forget(name)

    def finishing(self) -> Iterator[None]:
        if self.by_clock:
            self.levels.own = END_OF_TIME
        yield from super().finishing()

    @property
    def _nothing_at_the_end(self) -> bool:
        return not self.panes.ordered and super()._nothing_at_the_end

    def advance(self, watermark: float) -> None:
        if not self.by_clock or watermark == END_OF_TIME:
            super().advance(watermark)

    # the clock ---------------------------------------------------------------------------------

    def due_at(self) -> float | None:
        """Return when something is due by the clock next, seconds since the epoch; None: nothing is."""
        found = [self.alarms.next(END_OF_TIME), self.timers.next(END_OF_TIME) if self.by_clock else None]
        return min((each[0] for each in found if each is not None), default=None)

    def due_now(self, now: float) -> tuple[Name] | None:
        """The name of the key with what is due first by the clock; None: nothing is. An early pane comes before an end."""
        for early, timers in ((True, self.alarms), (False, self.timers)):
            if not early and not self.by_clock:
                break
            while (found := timers.next(now)) is not None:
                if self.elements.wake(found[1]) is not None:
                    self._due_now = (early, *found)
                    return (found[1],)
                timers.remove(*found)  # it has moved
        return None

    def fire_now(self) -> None:
        """Do what `due_now` said."""
        assert self._due_now is not None
        early, due, name = self._due_now
        (self.alarms if early else self.timers).remove(due, name)
        windows = self.elements.wake(name)
        if windows is None:
            return
        if not early:
            self.levels.own = max(self.levels.own, due)
            self.levels.catch_up()
            self.close_due(name, windows, due)
            return
        for index, told in sorted(windows.told.items(), key=lambda each: self.bounds[each[0]]):
            if told.wake_at is not None and told.wake_at <= due:
                told.wake_at = None
                if told.new and not told.ended:
                    self._tell(windows, index, EARLY, False, own=True)

    # moving ------------------------------------------------------------------------------------

    def _key_came(self, name: Name, state: bytes) -> None:
        super()._key_came(name, state)
        if self.panes.early_seconds is not None:
            for _, _, *told in self.codec.unpack(state):
                if told and told[0][3] is not None:
                    self.alarms.add(told[0][3], name)
