"""The open windows of a key, by their numbers, and the bounds that these stand for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from esault.topology.window import Window

__all__ = ["Bounds", "Late", "OpenWindows", "owned"]

#: bounds that are kept: those of windows that are open are asked for again and again
KEPT = 4096


class Bounds(dict[Any, Window]):
    """Number of a window -> its bounds; those of one window are one object."""

    __slots__ = ("_window",)

    def __init__(self, window: Callable[[int], Window]) -> None:
        super().__init__()
        self._window = window

    def __missing__(self, index: Any) -> Window:
        if len(self) >= KEPT:
            self.clear()
        # One that was cut otherwise, before the run was resumed, stands under its bounds.
        bounds = self[index] = Window(*index) if type(index) is tuple else self._window(index)
        return bounds

    def ends(self, state: Iterable[Any]) -> list[float]:
        """Return when the windows end that a key has with this state."""
        return [self[index].end for index, *_ in state]


class Late:
    """Stands in place of an object whose window has closed."""

    __slots__ = ("process",)

    def __init__(self, process: Callable[[Any, Any], None]) -> None:
        self.process = process


class OpenWindows(dict[Any, Any]):
    """The open windows of a key: number -> object, opened when the first row comes."""

    __slots__ = ("key",)

    key: Any
    #: of the class, see `owned`
    of: Any

    def __missing__(self, index: Any) -> Any:
        return self.of.open(self, index)

    def objects(self) -> list[Any]:
        return list(self.values())

    def __getstate__(self) -> Any:
        return tuple([(index, self.of.packed(element)) for index, element in self.items()])

    def __setstate__(self, state: Any) -> None:
        for index, packed, *_ in state:
            self[index] = self.of.restored(self.key, self.of.bounds[index], packed)


def owned(cls: type, operator: Any) -> type:
    """Return the class of an operator's own, which knows it as `of`: there may be one of its objects for each row."""
    return type(cls.__name__, (cls,), {"__slots__": (), "of": operator})
