"""Windows of a checkpoint: how they were cut, as it says that, and open ones in a run that cuts them otherwise.

State says of an open window its number, which means other bounds where a unit has other windows now. Then the bounds stand in place of
the number: such a window gets no more tuples, and closes where it would have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from esault.topology.calendar_window import CalendarWindow
from esault.topology.window import CountWindow, SessionWindow, SlidingWindow, TimeWindow, Window, WindowKind

__all__ = ["NO_WINDOWS", "kept_windows", "kind_of", "said_of", "why_no_place"]

#: what stands in state alike
_FORMS = {
    **dict.fromkeys(("sliding", "calendar", "time"), "windows of time"),
    "count": "windows of so many tuples",
    "session": "windows of sessions",
}
#: of a unit without windows
NO_WINDOWS = ("none",)


def said_of(kind: WindowKind | None) -> tuple[Any, ...]:
    """Return what a checkpoint says of the windows of a unit: a name and numbers, as JSON has them."""
    if kind is None:
        return NO_WINDOWS
    if isinstance(kind, SlidingWindow) and type(kind).__module__ == SlidingWindow.__module__:
        return ("sliding", kind.size, kind.every, kind.offset)
    if type(kind) is CalendarWindow:
        return ("calendar", kind.unit, kind.zone, kind.week_starts)
    if type(kind) is CountWindow:
        return ("count", kind.size, kind.step)
    if type(kind) is SessionWindow:
        return ("session",)
    return ("time" if isinstance(kind, TimeWindow) else "key", f"{type(kind).__module__}.{type(kind).__qualname__}")


def kind_of(said: Sequence[Any]) -> WindowKind | None:
    """Return the windows of which this was said; None where they are those of a class of the user's, or it was not said."""
    name, *rest = said or NO_WINDOWS
    if name == "sliding":
        return SlidingWindow(*rest)
    if name == "calendar":
        return CalendarWindow(*rest)
    if name == "count":
        return CountWindow(*rest)
    return SessionWindow(1) if name == "session" else None


def why_no_place(said: Sequence[Any], now: WindowKind | None) -> str | None:
    """Return why the state of windows, or of keys, of which this was said has no place in these; None: it has."""
    before, after = (_FORMS.get(each[0], "no windows") for each in (said or said_of(now), said_of(now)))
    return None if before == after else f"it had {before}, and has {after} now"


def kept_windows(state: Any, before: WindowKind, now: TimeWindow) -> Any:
    """The state of a key's open windows, which were cut as `before`, where they are cut as `now`."""
    assert isinstance(before, TimeWindow)
    kept = []
    for index, *held in state:
        bounds = Window(*index) if type(index) is tuple else before.window(index)
        same = [each for each in now.indices(bounds.start) if now.window(each) == bounds]
        kept.append((same[0] if same else tuple(bounds), *held))
    return tuple(kept)
