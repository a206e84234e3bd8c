"""Doubts about a plan: what runs, and is most likely not what was meant. `esault check` says them."""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType
from typing import Generic

from esault.topology.bolt import BatchBolt, Bolt
from esault.topology.factory import class_behind
from esault.topology.method_code import codes_of_methods
from esault.topology.plan import Plan, UnitPlan

__all__ = ["lost_times", "timeless_timers", "unused_ticks"]

_BASES = (Bolt, Generic, object)


def timeless_timers(plan: Plan) -> list[str]:
    """Return a sentence for each bolt that sets timers without `by=`, where an input of it has no event time: its first tuple would fail."""
    return [
        f"{where} sets a timer by event time, which the tuples of {unit.name!r} have not: say .timed(lambda value: value['at']) before "
        "the bolt, on each of its inputs, or take by='processing'"
        for unit in plan.units.values()
        if unit.timers and not unit.watermarks
        for where in _setters(unit)
    ]


def _setters(unit: UnitPlan) -> Iterator[str]:
    """Yield the first method that sets a timer and nowhere says by which time."""
    cls = None if unit.factory is None else class_behind(unit.factory)
    if cls is None:
        return
    owners: dict[str, str] = {}  # of methods: what a class defines anew is not that of those it derives from
    for name, code in codes_of_methods(cls, (), _BASES):
        owner, _, method = name.rpartition(".")
        if owners.setdefault(method, owner) == owner and "timer" in code.co_names and not _says_by(code):
            yield name
            return


def _says_by(code: CodeType) -> bool:
    # a keyword stands in a tuple of names, an argument by itself
    return any(each == "processing" or (type(each) is tuple and "by" in each) for each in code.co_consts)


def unused_ticks(plan: Plan) -> list[str]:
    """Return a sentence for each bolt whose `tick_every` calls nothing: the name `tick` was misspelt, most likely."""
    return [
        f"unit {unit.name!r}: tick_every={unit.tick_every:g} says how often tick(self, now) is called, and {cls.__name__} defines none; define "
        "it, or leave tick_every out"
        for unit in plan.units.values()
        if unit.tick_every is not None
        and (cls := class_behind(unit.factory)) is not None
        and getattr(cls, "tick", None) in (Bolt.tick, BatchBolt.tick)
    ]


def lost_times(plan: Plan) -> list[str]:
    """Return a sentence for each unit behind which event time begins again, although a unit before it had begun it.

    Where streams meet of which one has no event time, that of the others ends. What begins behind it knows neither their lateness nor
    the watermark of each reader, and takes more for late.
    """
    starts = {name for name, unit in plan.units.items() if _begins(unit)}
    said = []
    for name in plan.units:
        if name in starts and (before := sorted(plan.above(name) & starts)):
            without = [each for each in sorted(plan.above(name)) if not plan.senders(each) and each not in starts]
            why = f", since {', '.join(map(repr, without))} has none" if without else ""
            said.append(
                f"event time of {', '.join(map(repr, before))} does not go on to {name!r}{why}: it begins anew there, and what readers bring "
                "later than others may be late; give all that meet a time=, or take windows before they meet"
            )
    return said


def _begins(unit: UnitPlan) -> bool:
    return any(
        step.kind == "timed" for outlet in unit.streams.values() for each in outlet.walk() for step in each.steps
    )
