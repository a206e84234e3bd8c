"""Windows for `stream.window(...)` and `stream.join(...)`."""

from __future__ import annotations

from esault.topology.window import CountWindow, SessionWindow, SlidingWindow, TumblingWindow, Window

__all__ = ["CountWindow", "SessionWindow", "SlidingWindow", "TumblingWindow", "Window"]
