"""Event time: when what a tuple tells of happened, and how far behind others a tuple may come."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from esault.errors import TopologyError
from esault.topology.arguments import check_seconds, described_span
from esault.topology.function import check_function
from esault.value_class import value_class

__all__ = ["EventTime", "Idle", "checked_event_time"]


@value_class(frozen=True)
class Idle:
    """`idle=` with more to say: after so many seconds without anything to read windows do not wait for this sub-unit.

    `advance=True`: while all that windows wait for is idle, event time goes on with the clock from the newest tuple, so that windows
    close, and timers and patterns come due, in silence. What comes later with an earlier time is late.
    """

    seconds: float
    advance: bool = False


@value_class(frozen=True)
class EventTime:
    """The place where event time starts: `time(value)` in seconds since the epoch."""

    time: Callable[[Any], float]
    #: seconds that a tuple may be behind the newest one and still be on time
    lateness: float = 0.0
    #: seconds without anything to read after which windows do not wait for this sub-unit; None: they always do
    idle: float | None = None
    #: seconds that a tuple may be ahead of the clock; one that is further is not believed. None: all are
    ahead: float | None = None
    #: while all are idle the watermark goes on with the clock
    advance: bool = False


def checked_event_time(where: str, time: Any, lateness: object, idle: object, ahead: object) -> EventTime:
    """Return what was given, if it makes sense. Raises TopologyError."""
    check_function(f"{where}, time", time, takes=("the value",))
    if lateness is None:
        lateness = 0.0
    if isinstance(lateness, bool) or not isinstance(lateness, (int, float)) or not math.isfinite(lateness):
        raise TopologyError(f"{where}: lateness is a number of seconds, not {described_span(lateness)}")
    if lateness < 0:
        raise TopologyError(
            f"{where}: lateness={lateness!r} is below 0; it says by how many seconds a tuple may come behind newer ones, 0 if they "
            "come in order"
        )
    advance = isinstance(idle, Idle) and idle.advance
    if isinstance(idle, Idle):
        idle = idle.seconds
    return EventTime(
        time,
        float(lateness),
        None if idle is None else check_seconds(where, "idle", idle),
        None if ahead is None else check_seconds(where, "ahead", ahead),
        advance,
    )
