"""Arguments about a window in a topology's calls, checked: its kind, its times, its grouping, its bolt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from esault.errors import TopologyError
from esault.topology.event_time import EventTime, checked_event_time
from esault.topology.function import call_of, check_function
from esault.topology.panes import PROCESSING, Panes, checked_panes
from esault.topology.timed_bolt import Unwindowed
from esault.topology.unit_options import WindowOptions
from esault.topology.window import TimeWindow, WindowKind
from esault.topology.window_kinds import WINDOW_KINDS
from esault.value_class import value_class

__all__ = ["LATE", "WindowPlan", "checked_window"]

#: the stream of tuples whose window had closed
LATE = "late"
_CALLS = [call_of(kind) for kind in WINDOW_KINDS]
_KINDS = f"{', '.join(_CALLS[:-1])} or {_CALLS[-1]}"


@value_class(frozen=True)
class WindowPlan:
    """The windows of a unit, as its sub-units need to know them."""

    kind: WindowKind
    #: for each input what gives a value's time; empty where time plays no part
    times: tuple[Callable[[Any], float], ...] = ()
    #: for each of `times`: seconds ahead of the clock beyond which a tuple is not believed; None: all are
    ahead: tuple[float | None, ...] = ()
    #: which results a window has, where that is more than one at its end, of tuples in the order in which they come
    panes: Panes | None = None
    #: the clock closes them, and not the watermark
    by_clock: bool = False

    @property
    def timed(self) -> bool:
        """Return whether time closes them."""
        return bool(self.times)

    @property
    def clocked(self) -> bool:
        """Return whether there is something to do when the clock says so."""
        return self.by_clock or (self.panes is not None and self.panes.early_seconds is not None)


def checked_window(
    name: str, given: WindowOptions, inputs: Sequence[tuple[Any, Any]], batch: bool
) -> tuple[WindowPlan, list[EventTime | None]]:
    """The windows, and for each input (outlet, grouping) where event time starts right before it; None: further up.

    Raises TopologyError.
    """
    where = f"unit {name!r}"
    window = given.window
    if isinstance(window, type) and issubclass(window, WindowKind):
        raise TopologyError(f"{where}: {window.__name__} lacks its size; write {_KINDS}")
    if not isinstance(window, WindowKind):
        raise TopologyError(f"{where}: {window!r} ({type(window).__name__}) is no window; write {_KINDS}")
    if not isinstance(window, (TimeWindow, Unwindowed, *WINDOW_KINDS)):
        raise TopologyError(f"{where}: {type(window).__name__} says nothing of its windows; derive it from TimeWindow")
    for outlet, grouping in inputs:
        if not grouping.promises.whole_keys:
            raise TopologyError(
                f"{where}, input {outlet.label!r}: windows have an object per key and window, and {grouping!r} has not; "
                "leave the grouping at by_key(). For windows over all tuples give them one key: .key_by(lambda value: 'all')"
            )
    if batch:
        raise TopologyError(f"{where}: a BatchBolt has one object for all keys; a window takes a Bolt")
    panes = checked_panes(where, given, window)
    if given.by == PROCESSING:
        return WindowPlan(window, panes=panes, by_clock=True), [None] * len(inputs)
    said = [a for a in ("lateness", "idle", "ahead") if getattr(given, a) is not None]
    if not window.timed:
        if any(t is not None for t in given.times) or said:
            raise TopologyError(
                f"{where}: time plays no part in a {type(window).__name__}; leave out {' and '.join(said or ['time'])}, or take another window"
            )
        return WindowPlan(window), [None] * len(inputs)
    times: list[Callable[[Any], float]] = []
    ahead: list[float | None] = []
    starts: list[EventTime | None] = []
    for (outlet, _), own in zip(inputs, given.times):
        time = outlet.time if own is None else own
        if time is None:
            known = (
                " (that further up was for values that have been changed or held back since)" if outlet.has_time else ""
            )
            raise TopologyError(
                f"{where}: nothing says when a tuple of {outlet.label!r} happened{known}; write time=lambda value: value['at'], in "
                "seconds since the epoch"
            )
        check_function(f"{where}, time", time, takes=("the value",))
        times.append(time)
        start = None
        if not outlet.has_time:
            start = checked_event_time(where, time, given.lateness, given.idle, given.ahead)
        starts.append(start)
        ahead.append(outlet.ahead if start is None else start.ahead)
    if said and not any(starts):
        raise TopologyError(
            f"{where}: event time starts further up for {' and '.join(repr(o.label) for o, _ in inputs)}; say {' and '.join(said)} "
            "there, and leave it out here"
        )
    return WindowPlan(window, tuple(times), tuple(ahead), panes), starts
