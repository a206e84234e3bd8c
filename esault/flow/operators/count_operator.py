"""Windows of so many rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

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

    def __init__(self, *of: Any) -> None:
        super().__init__(*of)
        assert self.plan.window is not None and isinstance(self.plan.window.kind, CountWindow)
        self.size = self.plan.window.kind.size

    def windows_of_key(self) -> _Counted:
        return _Counted(self)

    def bounds(self, row: int) -> Window:
        """Of the window of this row of a key; rows are counted from 0."""
        start = row - row % self.size
        return Window(start, start + self.size)

    def take(self, windows: Any, stream: str, time: Callable[[Any], float] | None, value: Any) -> None:
        counted: _Counted = windows
        if counted.element is None:
            counted.element = self.new(counted.key, self.bounds(counted.rows))
        self.call(counted.element, stream, counted.key, value)
        if (counted.rows + 1) % self.size == 0:
            counted.element.finish()
            self._close(counted.element)
            counted.element = None
        counted.rows += 1  # last: a try that fails may be repeated

    def finishing(self) -> Iterator[None]:
        self.elements.wake_all()
        for _, counted in self.elements.live():
            if counted.element is not None:
                self.finish(counted.element)
                counted.element = None
                yield
