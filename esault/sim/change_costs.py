"""Costs of changes, learnt from those of a run: how long newcomers take to start, and moved keys wait."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from esault.messages.change_record import ChangeRecord
from esault.sim.model import Timing
from esault.value_class import value_class

__all__ = ["ChangeCost", "learnt_timing", "slowest"]

#: bytes that one change must have moved before the time of a byte is learnt: below, it is lost in the rest
ENOUGH_BYTES = 1 << 20
#: below so many growths the slowest of them is no slow one yet
FEW = 3
#: what a slow growth takes then, as a share of a usual one: on a host whose processors had other work the same growths took 0.16
#: to 1.6 s
UNKNOWN = 4.0


@value_class(frozen=True)
class ChangeCost:
    """The cost of one change. Times are seconds."""

    #: sub-units that it started
    started: int
    #: from the request until they stood ready and the table was published
    prepared: float
    #: the longest that a moved key waited
    held: float
    moved_bytes: int = 0
    #: from when the last moved key went on until the change was over
    finished: float = 0.0

    @classmethod
    def of_record(cls, record: ChangeRecord) -> ChangeCost:
        """Return that of a change of a run that is on."""
        started = 1 if record.kind == "move" else max(0, record.after - record.before)
        finished = max(0.0, record.seconds - record.prepared - record.held)
        return cls(started, record.prepared, record.held, record.moved_bytes, finished)

    @classmethod
    def of_report(cls, change: Mapping[str, Any]) -> ChangeCost:
        """Return that of an entry of `changes` in a report. Raises KeyError, TypeError."""
        started = 1 if change["kind"] == "move" else max(0, change["to"] - change["from"])
        finished = max(0.0, change["total_ms"] - change["prepare_ms"] - change["held_back_ms"]) / 1000
        return cls(started, change["prepare_ms"] / 1000, change["held_back_ms"] / 1000, change["moved_bytes"], finished)


def learnt_timing(costs: Iterable[ChangeCost], assumed: Timing) -> Timing:
    """Return what changes take by those that were measured; what they do not tell is as assumed.

    Straight lines are laid through them: preparation over sub-units that start, time held over those, or over bytes that move
    where these are many.
    """
    measured = list(costs)
    found = assumed
    if grown := [each for each in measured if each.started]:
        sizes, times = [each.started for each in grown], [each.prepared for each in grown]
        first, more = _line([size - 1 for size in sizes], times, assumed.start_each)
        if not first:
            # The line leaves no time for the first one: then all of a change take the same.
            first = more = sum(a * b for a, b in zip(sizes, times)) / sum(a * a for a in sizes)
        found = replace(found, start=first, start_each=more)
    if shrunk := [each.prepared for each in measured if not each.started]:
        found = replace(found, switch=statistics.median(shrunk))
    if measured:
        found = replace(found, finish=statistics.median(each.finished for each in measured))
        known = 1.0 / assumed.bytes_per_second
        if max(each.moved_bytes for each in measured) < ENOUGH_BYTES:
            waits = [max(0.0, each.held - each.moved_bytes * known) for each in measured]
            move, more = _line([each.started for each in measured], waits, assumed.move_each)
            found = replace(found, move=move, move_each=more)
        else:
            move, of_a_byte = _line([each.moved_bytes for each in measured], [each.held for each in measured], known)
            speed = 1.0 / of_a_byte if of_a_byte > 0 else assumed.bytes_per_second
            found = replace(found, move=move, bytes_per_second=speed)
    return found


def slowest(costs: Iterable[ChangeCost], timing: Timing) -> float:
    """Return what a slow growth takes, as a share of what `timing` says: by the slowest that was measured, or as far as is known."""
    grown = [each for each in costs if each.started]
    if len(grown) < FEW:
        return max([UNKNOWN, *(_taken(each, timing) for each in grown)])
    return max(1.0, *(_taken(each, timing) for each in grown))


def _taken(cost: ChangeCost, timing: Timing) -> float:
    usual = timing.preparation(cost.started) + timing.hold(cost.started) + cost.moved_bytes / timing.bytes_per_second
    return (cost.prepared + cost.held) / usual if usual > 0 else 1.0


def _line(xs: Sequence[float], ys: Sequence[float], slope: float) -> tuple[float, float]:
    """Return the height at 0 and the slope of the line with the least squares, neither below 0; `slope` where all xs are equal."""
    x, y = statistics.fmean(xs), statistics.fmean(ys)
    spread = sum((each - x) ** 2 for each in xs)
    if spread > 0:
        slope = max(0.0, sum((a - x) * (b - y) for a, b in zip(xs, ys)) / spread)
    if y - slope * x >= 0:
        return y - slope * x, slope
    # Through the origin: a change takes no time below 0.
    return 0.0, sum(a * b for a, b in zip(xs, ys)) / sum(a * a for a in xs)
