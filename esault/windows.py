"""Windows for `stream.window(...)` and `stream.join(...)`: all that `esault.topology.window` exports, and those of the calendar."""

from __future__ import annotations

from esault.topology import window as _window
from esault.topology.calendar_window import CalendarWindow
from esault.topology.event_time import Idle
from esault.topology.pane import Pane
from esault.topology.window import *  # noqa: F403

__all__ = ["CalendarWindow", "Idle", "Pane", *_window.__all__]  # noqa: PLE0604
