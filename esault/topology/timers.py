"""Timers in a topology's calls, checked: which bolts may have them, and which need the times of their tuples."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from esault.errors import TopologyError
from esault.topology.bolt import Bolt
from esault.topology.factory import class_behind
from esault.topology.plan import UnitPlan
from esault.topology.ttl import has_event_ttl
from esault.topology.unit_options import UnitOptions

__all__ = ["with_timers"]


def with_timers(unit: UnitPlan, options: UnitOptions, times: Sequence[Callable[[Any], float] | None]) -> UnitPlan:
    """The plan with what its bolt says of timers: it defines `on_timer`, or something of it ends by event time.

    `times`: for each input what gives a value's time; None where it is not known. Raises TopologyError.
    """
    assert unit.factory is not None
    cls = class_behind(unit.factory) or type(unit.factory())
    where = f"unit {unit.name!r}"
    hook = getattr(cls, "on_timer", None)
    timers = hook is not None and hook is not Bolt.on_timer
    if timers:
        _check(unit, f"{where}: {cls.__name__} defines on_timer, and")
    why = ""
    if options.expire_by == "event":
        if options.expire_after is None:
            raise TopologyError(
                f"{where}: expire_by says by which time expire_after counts; write expire_after=SECONDS with it"
            )
        why = "expire_by='event'"
        if unit.objects != "key":
            raise TopologyError(f"{where}: {why} is for objects per key, which {unit.inputs[0].grouping!r} has not")
    elif options.expire_by != "processing":
        raise TopologyError(
            f"{where}: expire_by={options.expire_by!r}; objects expire by 'processing' or by 'event' time"
        )
    if has_event_ttl(cls):
        why = why or f"{cls.__name__} has ttl(by='event')"
    if not why:
        return dataclasses.replace(unit, timers=timers, timer_times=tuple(times) if timers else ())
    if not timers:
        _check(unit, f"{where}: {why}, and")
    known = [time for time in times if time is not None]
    if len(known) < len(times):
        raise TopologyError(
            f"{where}: {why}, and nothing says when a tuple of {unit.inputs[times.index(None)].stream!r} happened; write "
            ".timed(lambda value: value['at']) right before the bolt"
        )
    return dataclasses.replace(unit, timers=True, times=tuple(known), expire_by=options.expire_by)


def _check(unit: UnitPlan, begun: str) -> None:
    """Raise TopologyError, whose text is begun so, where a bolt cannot have timers."""
    if unit.batch:
        raise TopologyError(
            f"{begun} a BatchBolt has one object for all keys; timers are those of a key: make it a Bolt"
        )
    if unit.window is not None:
        raise TopologyError(
            f"{begun} an object of a window lives until that closes, when its finish is called; set timers in a bolt by_key()"
        )
    if unit.concurrency is not None:
        raise TopologyError(
            f"{begun} its process is async: a call of the key may be open when the timer is due; set timers in a plain bolt "
            "before or behind it"
        )
    if unit.objects not in ("key", "unit"):
        raise TopologyError(
            f"{begun} it comes by {unit.inputs[0].grouping!r}, whose objects stand for no key and go when the unit shrinks, with "
            "what was to be done later; group it by_key() or single(), or use tick_every"
        )
