"""The engine's own kinds of windows: a new one is a line here."""

from __future__ import annotations

from esault.topology.calendar_window import CalendarWindow
from esault.topology.window import CountWindow, SessionWindow, SlidingWindow, TumblingWindow, WindowKind

__all__ = ["WINDOW_KINDS"]

#: in the order in which an error lists them
WINDOW_KINDS: tuple[type[WindowKind], ...] = (
    TumblingWindow,
    SlidingWindow,
    SessionWindow,
    CalendarWindow,
    CountWindow,
)
