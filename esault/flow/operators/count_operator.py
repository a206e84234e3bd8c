"""Windows of so many rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from esault.flow.operators.operator import STOPPING
from esault.flow.operators.operator_parameters import OperatorParameters
from esault.flow.operators.window_operator import WindowOperator
from esault.topology.window import CountWindow, Window

__all__ = ["CountOperator"]


class _Counted:
    """The window of a key that is open, and how many rows it and those before it have had."""

    __slots__ = ("element", "key", "of", "rows")

    key: Any

    def __init__(self, of: CountOperator) -> None:
        self.of = of
        self.element: Any = None
        self.rows = 0

    def objects(self) -> list[Any]:
        return [] if self.element is None else [self.element]

    def __getstate__(self) -> Any:
        return (self.rows, None if self.element is None else self.of.packed(self.element))

    def __setstate__(self, state: Any) -> None:
        self.rows, packed = state
        if packed is not None:
            self.element = self.of.restored(self.key, self.of.bounds(self.rows - 1), packed)


class CountOperator(WindowOperator):
    """Closes a window with its last row. What is left when all ends is finished as it is."""

    def __init__(self, parameters: OperatorParameters) -> None:
        super().__init__(parameters)
        assert self.plan.window is not None and isinstance(self.plan.window.kind, CountWindow)
        self.size = self.plan.window.kind.size
        #: the windows of a key whose last row has just come
        self._full: _Counted | None = None

    def windows_of_key(self) -> _Counted:
        return _Counted(self)

    def bounds(self, row: int) -> Window:
        """Of the window of this row of a key; rows are counted from 0."""
        start = row - row % self.size
        return Window(start, start + self.size)

    def add_row(self, windows: Any, stream: str, time: Callable[[Any], float] | None, value: Any) -> None:
        counted: _Counted = windows
        new = counted.element is None
        try:
            if new:
                counted.element = self.new(counted.key, self.bounds(counted.rows))
            self.call(counted.element, stream, counted.key, value)
        except STOPPING:
            raise
        except BaseException:
            if new:  # no window without a row
                self._leave(counted)
            raise
        counted.rows += 1
        if counted.rows % self.size == 0:
            if self._careful:
                self._full = counted  # the row is in: what goes wrong from here on is no fault of `process`
            else:
                self._close_full(counted)

    def row_added(self) -> None:
        full, self._full = self._full, None
        if full is not None:
            self._close_full(full)

    def _close_full(self, counted: _Counted) -> None:
        """Close the full window of a key. What `finish` emits belongs to the row that filled the window."""
        element, counted.element = counted.element, None
        self._attempt(element.finish, counted.key, None, "finish")
        self._close(element)

    def _leave(self, counted: _Counted) -> None:
        """A window goes that has had no row."""
        element, counted.element = counted.element, None
        if element is not None:
            self._close(element)
        if not counted.rows:
            self.elements.forget(self.name_of(counted.key))

    def finishing(self) -> Iterator[None]:
        if self._nothing_at_the_end:
            return
        self.elements.wake_all()
        for _, counted in self.elements.live():
            element, counted.element = counted.element, None
            if element is not None:
                self.finish(element)
                yield
