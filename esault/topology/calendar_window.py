"""Calendar windows: days, weeks, months, quarters and years as they are in a time zone."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

from esault.errors import TopologyError
from esault.topology.window import TimeWindow, Window

__all__ = ["CalendarWindow"]

#: months of those that are made of months
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_UNITS = ("day", "week", *_MONTHS)
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
#: of this day, which was a Monday, days are counted from 1
_FIRST = datetime(1, 1, 1)
#: bounds that are kept
_KEPT = 4096


@dataclass(frozen=True)
class CalendarWindow(TimeWindow):
    """Windows of a `unit` of the calendar, "day", "week", "month", "quarter" or "year", in a time zone.

    Each begins at the first moment of its first day there, so a day is 23 or 25 hours long where clocks are changed. Zones are named as
    in the IANA database, such as "Europe/Berlin"; all processes must know the same version of it. Weeks begin on `week_starts`.
    Raises TopologyError.
    """

    unit: str
    zone: str = "UTC"
    week_starts: str = "monday"
    #: the window that was asked for last, and its bounds: times mostly follow each other
    _last: list[tuple[float, float, int]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.unit not in _UNITS:
            raise TopologyError(f"CalendarWindow: unit={self.unit!r} is not one of {', '.join(map(repr, _UNITS))}")
        if self.week_starts not in _WEEKDAYS:
            raise TopologyError(
                f"CalendarWindow: week_starts={self.week_starts!r} is not one of {', '.join(map(repr, _WEEKDAYS))}"
            )
        _zone(self.zone)
        object.__setattr__(self, "_last", [(0.0, 0.0, 0)])

    def indices(self, time: float) -> range:
        """Return the number of the window that contains this time, as a range. Raises ValueError beyond the years 1 to 9999."""
        start, end, index = self._last[0]
        if not start <= time < end:
            try:
                index = self._number(datetime.fromtimestamp(time, timezone.utc).astimezone(_zone(self.zone)))
                window = self.window(index)
                # Where clocks go back over midnight the date goes back with them: bounds decide.
                while window.end <= time:
                    index += 1
                    window = self.window(index)
                while window.start > time:
                    index -= 1
                    window = self.window(index)
            except (OverflowError, OSError, ValueError):  # also of its window's end alone
                raise ValueError(
                    f"time gave {time!r}, whose {self.unit} reaches beyond the years 1 to 9999 of the calendar"
                ) from None
            self._last[0] = (window.start, window.end, index)
        return range(index, index + 1)

    def window(self, index: int) -> Window:
        """Return the bounds of window `index`."""
        return Window(_start(self, index), _start(self, index + 1))

    def _number(self, at: datetime) -> int:
        if self.unit == "day":
            return at.toordinal()
        if self.unit == "week":
            return (at.toordinal() - 1 - _WEEKDAYS.index(self.week_starts)) // 7
        return (12 * at.year + at.month - 1) // _MONTHS[self.unit]

    def _first_day(self, index: int) -> datetime:
        if self.unit == "day":
            return _FIRST + timedelta(days=index - 1)
        if self.unit == "week":
            return _FIRST + timedelta(days=7 * index + _WEEKDAYS.index(self.week_starts))
        month = index * _MONTHS[self.unit]
        return datetime(month // 12, month % 12 + 1, 1)


@functools.lru_cache(_KEPT)
def _start(kind: CalendarWindow, index: int) -> int:
    """The first second of this window, since the epoch; of a midnight that is there twice the first, of one that is skipped what follows."""
    return int(kind._first_day(index).replace(tzinfo=_zone(kind.zone), fold=0).timestamp())


@functools.lru_cache
def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except Exception as error:  # also of a name that is a folder, or no name
        raise TopologyError(
            f"CalendarWindow: zone={name!r} is not known here ({type(error).__name__}); write a name such as 'Europe/Berlin', and where "
            "the system has no time zones, pip install tzdata"
        ) from None
