"""The bolts of a plan that run in the process of the unit before them, as a run asks for it."""

from __future__ import annotations

from esault.elasticity.objective import LatencyObjective
from esault.elasticity.policy import DEFAULT
from esault.elasticity.scaling import EVERY_UNIT
from esault.messages.checkpoint import CompletedCheckpoint
from esault.messages.settings import Settings
from esault.runtime.session.request import Request
from esault.topology.chaining import chainable
from esault.topology.plan import Plan

__all__ = ["chained_of"]


def chained_of(request: Request, plan: Plan, kept: CompletedCheckpoint | None) -> tuple[str, ...]:
    """Return the bolts that a run chains. What was said about a unit by itself keeps it apart, and so does what `kept` holds of it.

    Policies besides `auto` judge each unit by what its sub-units measure, and on several hosts units are placed by what they need and
    write: there is none then.
    """
    settings: Settings = request.settings
    if not settings.chaining or request.hosts is not None:
        return ()
    if request.policies.get(EVERY_UNIT, DEFAULT).partition(":")[0] not in (DEFAULT, "none"):
        return ()
    named = {*settings.unchained, *request.parallelism, *request.policies} - {EVERY_UNIT}
    aimed_at = {LatencyObjective.parse(text).unit for text in settings.objectives}
    return chainable(plan, {*named, *aimed_at, *(() if kept is None else kept.apart)})
