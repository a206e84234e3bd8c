"""A tuple at the times that a crontab line names."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone, tzinfo
from typing import Any, ClassVar

from esault.errors import TopologyError
from esault.sources.ticks import Ticks

__all__ = ["Cron"]


class Cron(Ticks):
    """Offers a tuple at the times of a crontab line, such as "*/5 * * * *"; needs `esault[cron]`. Key: None, value: when it was due, seconds since the epoch.

    `expression` has five fields: minute, hour, day of month, month, day of week; or six, with seconds first. `time_zone` is a name
    such as "Europe/Berlin". In the hour that a change to summer time leaves out and in the one that comes twice it does as Debian's cron
    does: a job for a time within it runs once, one for every hour or minute goes on evenly.

    `missed` is for ticks that came due while nothing ran, such as between a stop and `--resume`: "all" of them come then, with
    their times; "once", the last one; or "skip", none. It is said how many. With "all" the same ticks come whenever and however often
    a run goes on; with the others, those that are undone by a crash count as missed, too. `count`: the stream ends behind so many.
    """

    delivery_guarantee: ClassVar[str] = 'with checkpoints each tick counts once, also those missed (missed="all")'
    extra: ClassVar[str] = "cron"

    def __init__(
        self, expression: str, *, time_zone: str = "UTC", missed: str = "all", count: int | None = None
    ) -> None:
        self.expression, self.time_zone = expression, time_zone
        super().__init__(f"Cron({expression!r})", missed, count)
        _zone(time_zone)
        cronsim = _library()
        try:
            next(cronsim.CronSim(expression, datetime(2024, 1, 1)))
        except (cronsim.CronSimError, AttributeError) as error:
            raise TopologyError(
                f"Cron: {expression!r} is no crontab line ({error}); write minute, hour, day of month, month and day of week, or seconds before them, such as "
                '"*/5 * * * *"'
            ) from None
        except StopIteration:
            raise TopologyError(f"Cron: {expression!r} names no day that ever comes; correct it") from None

    def times(self, began: float, last: float | None, number: int) -> Iterator[tuple[int, float]]:
        """Yield number and time of each tick behind `last`."""
        behind = began if last is None else last
        start = datetime.fromtimestamp(behind, _zone(self.time_zone))
        for at in _library().CronSim(self.expression, start):
            time = at.timestamp()
            if time > behind:  # begun within an hour that comes twice it names times of the first one
                number, behind = number + 1, time
                yield number, time


def _library() -> Any:
    try:
        import cronsim
    except ImportError:
        raise TopologyError("Cron needs cronsim: pip install 'esault[cron]'") from None
    return cronsim


def _zone(name: str) -> tzinfo:
    if name == "UTC":
        return timezone.utc
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, TypeError, OSError):
        raise TopologyError(
            f'Cron: time_zone={name!r} is not known here: write a name such as "Europe/Berlin"; where the system has no time zones, '
            "pip install tzdata"
        ) from None
