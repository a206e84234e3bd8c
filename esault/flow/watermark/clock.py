"""The clock, where event time starts: the times of rows that pass make a watermark."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import datetime
from decimal import Decimal
from math import isfinite
from numbers import Integral, Real
from typing import Any

from esault.topology.event_time import EventTime
from esault.topology.field import column_of, field_name

__all__ = ["BEGINNING", "END_OF_TIME", "Clock", "as_time", "no_time", "times_at_once"]

BEGINNING, END_OF_TIME = -math.inf, math.inf
#: seconds of quiet after which a sub-unit of a bolt is left out unless the user said otherwise: it may own no key that has tuples
IDLE_BOLT = 1.0
#: seconds between two steps of a watermark that goes on with the clock; those of Flink's periodic watermarks
STEP = 0.2
_STOPPING = (KeyboardInterrupt, GeneratorExit)
_TIMES = frozenset({int, float})


def as_time(value: Any) -> float | None:
    """A time as an int or a float, whatever kind of number it is given as; None for what is no finite real number.

    All that is compared, kept and moved is of these two types: others cannot travel, or are not compared with one another.
    """
    try:
        if type(value) is int or type(value) is float:  # to ask an abstract class takes four times as long
            return value if isfinite(value) else None
        if isinstance(value, Integral):
            return as_time(int(value))
        return as_time(float(value)) if isinstance(value, (Real, Decimal)) else None
    except (ValueError, OverflowError):  # a Decimal that signals, an int beyond all floats
        return None


def no_time(value: Any) -> str:
    """Return what is wrong with a value that `as_time` refuses, and the remedy where it is known."""
    said = f"{value!r} ({type(value).__name__}), which is no finite number of seconds since the epoch"
    if isinstance(value, datetime):
        return f"{said}; write .timestamp() behind it" + (
            " (naive: of the machine's time zone)" if value.tzinfo is None else ""
        )
    if isinstance(value, str):
        return f"{said}; text is read by datetime.fromisoformat(text).timestamp(), or float(text)"
    return said


def times_at_once(time: Callable[[Any], Any], values: Sequence[Any], latest: float | None) -> Sequence[float] | None:
    """The times of rows, where it is seen at a glance that each has one, and that none is beyond `latest`; None: look at each alone."""
    try:
        times: Sequence[Any] = tuple(map(time, values))
        if not _TIMES.issuperset(map(type, times)):
            times = tuple(map(as_time, times))
        if len(times) != len(values):  # a StopIteration of the function ended the map
            return None
        if not isfinite(sum(times)) or (latest is not None and max(times, default=latest) > latest):
            return None
    except _STOPPING:
        raise
    except BaseException:
        return None
    return times


def _greatest(column: Any) -> float | None:
    """Return the greatest time of a column of Arrow's; None where one is missing or is none, or of another type."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.null_count or not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        return None
    if pa.types.is_floating(column.type) and not pc.all(pc.is_finite(column)).as_py():
        return None
    return as_time(pc.max(column).as_py())


class Clock:
    """The greatest time seen, less the lateness that is allowed. Costs one call of `time` for each row."""

    __slots__ = ("_ahead", "_idle", "_last", "_lateness", "_now", "_time", "_top", "advances")

    def __init__(self, given: EventTime, now: Callable[[], float], of_bolt: bool) -> None:
        self._time = given.time
        self._lateness = given.lateness
        self._idle = IDLE_BOLT if given.idle is None and of_bolt else given.idle
        self._ahead = given.ahead
        #: while this is idle its watermark goes on with the clock
        self.advances = given.advance
        self._now = now
        self._top = BEGINNING
        #: when rows passed last
        self._last = now()

    def begin_at(self, time: float) -> None:
        """Go on where another clock was: its watermark was this."""
        self._top = max(self._top, time + self._lateness)

    def observe(self, values: Sequence[Any]) -> None:
        """Rows pass. A time that cannot be had or is none moves nothing: the code that opens windows says what is wrong with it."""
        now = self._last = self._now()
        most = END_OF_TIME if self._ahead is None else now + self._ahead
        try:
            top = as_time(max(map(self._time, values)))
        except _STOPPING:
            raise
        except BaseException:
            top = None
        if top is None or top > most:
            top = max(self._usable(values, most), default=BEGINNING)
        if top > self._top:
            self._top = float(top)

    def observe_columns(self, values: Any) -> bool:
        """The same of columns of Arrow's, without a row; False where times are none of them, or rows are to be looked at."""
        now = self._now()
        column = column_of(field_name(self._time), values)
        top = None if column is None else _greatest(column)
        if top is None or (self._ahead is not None and top > now + self._ahead):
            return False
        self._last = now
        if top > self._top:
            self._top = float(top)
        return True

    def _usable(self, values: Sequence[Any], most: float) -> list[float]:
        times = []
        for value in values:
            try:
                time = as_time(self._time(value))
            except _STOPPING:
                raise
            except BaseException:
                continue
            if time is not None and time <= most:
                times.append(time)
        return times

    @property
    def watermark(self) -> float:
        """Times of rows to come are not before it."""
        return self._top - self._lateness

    def idle_at(self, quiet_since: float | None) -> float:
        """Return the time at which this is idle if nothing comes; `quiet_since`: since when there has been nothing to read, None: there is."""
        if self._idle is None or quiet_since is None:
            return END_OF_TIME
        return max(quiet_since, self._last) + self._idle

    def stand(self, now: float, quiet_since: float | None) -> tuple[float, bool, float]:
        """Return the watermark, whether this is idle, and when one of them changes if nothing comes."""
        idle_at = self.idle_at(quiet_since)
        if now < idle_at:
            return self.watermark, False, idle_at
        if not self.advances or self._top == BEGINNING:
            return self.watermark, True, END_OF_TIME
        steps = (now - self._last) // STEP
        return self.watermark + steps * STEP, True, self._last + (steps + 1) * STEP
