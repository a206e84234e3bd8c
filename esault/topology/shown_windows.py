"""Windows of a key as people look at them: each that is open with its bounds, in place of the numbers that are saved."""

from __future__ import annotations

from typing import Any

from esault.topology.window import CountWindow, SessionWindow, TimeWindow, Window, WindowKind

__all__ = ["shown_windows"]


def shown_windows(kind: WindowKind, state: Any) -> Any:
    """Return an opened state with its windows as dicts: `start` and `end` in seconds since the epoch, or numbers of tuples; `state`.

    Tuples that came and are in no session yet, since earlier ones may follow, are `waiting`.
    """
    if isinstance(kind, TimeWindow):
        # Those of a run that cut them otherwise say their bounds.
        of_time = [(Window(*i) if type(i) is tuple else kind.window(i), held) for i, held, *_ in state]
        return [_window(bounds, held) for bounds, held in sorted(of_time, key=lambda each: each[0])]
    if isinstance(kind, SessionWindow):
        _, _, session, rows = state
        sessions = [] if session is None else [_window(Window(*session[0]), session[1])]
        waiting = [{"at": at, "value": value} for at, _, _, value in sorted(rows, key=lambda row: row[:2])]
        return {"sessions": sessions, "waiting": waiting}
    if isinstance(kind, CountWindow):
        tuples, held = state
        first = tuples // kind.size * kind.size
        found = held if type(held) is tuple else () if held is None else ((first + kind.size, held),)
        windows = [_window(Window(max(0, end - kind.size), end), each) for end, each in found]
        return {"tuples": tuples, "windows": windows}
    return state


def _window(bounds: Window, state: Any) -> dict[str, Any]:
    return {"start": bounds.start, "end": bounds.end, "state": state}
