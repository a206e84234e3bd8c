"""Readers that a source begins with by itself, where all of its work is theirs and no order depends on there being one."""

from __future__ import annotations

import os

from esault.elasticity.first_readers import first_readers
from esault.elasticity.policy import DEFAULT
from esault.elasticity.scaling import EVERY_UNIT
from esault.runtime.session.request import SLOTS, Request
from esault.topology.plan import Plan
from esault.topology.reading_order import why_one_reader
from esault.topology.replicas import width

__all__ = ["with_readers"]


def with_readers(request: Request, plan: Plan, cores: int | None = None) -> dict[str, int]:
    """Return name -> readers for the sources that begin with several. `plan`: with what is chained, its sources checked.

    What goes on from a checkpoint has the readers of that, and on several hosts units are placed by what they need and write.
    """
    settings, policies = request.settings, {EVERY_UNIT: DEFAULT, **request.policies}
    goes_on = request.resume or request.from_savepoint is not None
    if goes_on or request.hosts is not None or settings.budget or settings.hourly_budget:
        return {}
    if cores is None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    found: dict[str, int] = {}
    free = (request.slots or SLOTS) - settings.ackers - sum(width(u, request.parallelism) for u in plan.units.values())
    for name, unit in plan.units.items():
        said = name in request.parallelism or policies.get(name, policies[EVERY_UNIT]).partition(":")[0] != DEFAULT
        if said or why_one_reader(plan, unit) is not None:
            continue
        assert unit.spout is not None
        pieces = unit.spout.pieces()
        # Each other unit takes a processor, too.
        others = len(plan.units) - 1 + sum(found.values()) - len(found)
        most = min(cores - others, 1 + free, unit.max_parallelism or cores)
        readers = 1 if pieces is None else first_readers(pieces, most)
        if readers > 1:
            found[name] = readers
            free -= readers - 1
    return found
