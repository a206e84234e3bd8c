"""Event time that was said at one place and does not reach another, where it is begun anew."""

from __future__ import annotations

from esault.topology.plan import Plan, UnitPlan

__all__ = ["lost_times"]


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
