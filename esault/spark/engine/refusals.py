"""Refusals of the Spark engine, in one place: found by `esault check --engine spark`, and by a run before anything starts."""

from __future__ import annotations

from collections.abc import Mapping

from esault.elasticity.budget import Budget
from esault.elasticity.policy import DEFAULT, NONE
from esault.errors import TopologyError, UsageError
from esault.messages.delivery import Delivery
from esault.messages.settings import Settings
from esault.sources import DeadLetters
from esault.spark.engine.event_time import timed_edges
from esault.spark.engine.whole_splits import WholeSplits, each_alone
from esault.topology.plan import Plan, UnitPlan
from esault.topology.split_source import SplitSource

__all__ = ["check_options", "check_topology", "refusals"]

#: what a run has that says nothing of slots
SLOTS = 16


def refusals(plan: Plan) -> list[str]:
    """Return why a plan cannot run on Spark, and what to do; empty where it can."""
    found = []
    for unit in plan.units.values():
        where = f"unit {unit.name!r}"
        found += [f"{where}: {why}" for why in _of_unit(unit)]
    return list(dict.fromkeys(found))


def _of_unit(unit: UnitPlan) -> list[str]:
    why = []
    if unit.reads_splits:
        why.append(f"{type(unit.spout).__name__} {_why_not_whole(unit)}")
    if any(given is not None and given.advance for _, given in timed_edges(unit)):
        why.append(
            "Idle(advance=True): Spark runs a batch when tuples have come, so in silence nothing moves time on; write the seconds alone, "
            "idle=30"
        )
    return why


def _why_not_whole(unit: UnitPlan) -> str:
    source = unit.spout
    if isinstance(source, DeadLetters):
        return (
            "marks what was sent again, so that it is not read another time, and Spark reads a range of rows once more to process it; "
            "run it on actors"
        )
    own = not type(source).__module__.startswith("esault.")
    if isinstance(source, SplitSource) and own and not source.bounded and source.discovery_interval is None:
        return (
            "does not say that each of its splits has an end, and Spark reads one after the other; write bounded = True in its class where "
            "each has, or run it on actors"
        )
    if not own and isinstance(source, SplitSource) and not source.bounded:
        return (
            "reads a server, and Spark reads a range of rows once more to process it: what the server has let go of by then, and where "
            'until="end" would lie when it is asked anew, cannot be had again; run it on actors, or land its rows in a table or in files '
            "there, and read these on Spark"
        )
    if not (isinstance(source, SplitSource) and source.bounded):
        return (
            "is read in splits, whose rows come in no fixed order, and Spark reads a range of rows once more to process it; "
            "write a Spout with read, position and seek, or run it on actors"
        )
    return (
        "looks for new files, whose rows come among those of others in no fixed order, and Spark reads a range of rows once more to "
        "process it; write every=None, or take TextFiles(path, follow=True), or JsonFiles with follow=True"
    )


def check_topology(plan: Plan) -> None:
    """Raise TopologyError where a plan cannot run on Spark, with all the reasons."""
    found = refusals(plan)
    if found:
        raise TopologyError(f"{plan.name} cannot run on the Spark engine:\n" + "\n".join(f"- {why}" for why in found))


def check_options(
    plan: Plan, settings: Settings, parallelism: Mapping[str, int], policies: Mapping[str, str], slots: int
) -> None:
    """Raise UsageError for options that mean nothing on Spark, or ask for what cannot be."""
    if settings.delivery is Delivery.NONE:
        raise UsageError("--acks off: the Spark engine has no acks; leave it out")
    if settings.budget or settings.hourly_budget:
        raise UsageError(
            f"--budget {Budget(settings.budget, settings.hourly_budget)}: the Spark engine has no slots; say how many cores with --master 'local[N]' or --conf spark.cores.max=N"
        )
    if settings.objectives:
        raise UsageError(
            f"--objective {settings.objectives[0]!r}: Spark cannot change the number of tasks while it runs, so nothing can follow it; "
            "leave it out, and look at end_to_end_ms of the report"
        )
    if settings.ackers:
        raise UsageError(f"--ackers {settings.ackers}: the Spark engine has no ack servers; leave it out")
    if slots != SLOTS:
        raise UsageError(
            f"--slots {slots}: the Spark engine has no slots; say how many cores with --master 'local[{slots}]', and how many tasks "
            "a unit has with --parallelism UNIT=N"
        )
    for unit in policies:
        if unit and unit not in plan.units:
            raise UsageError(plan.unknown(unit))
    scaling = {unit: policy for unit, policy in policies.items() if policy not in (NONE, DEFAULT)}
    if scaling:
        unit, policy = next(iter(scaling.items()))
        said = f"{unit}={policy}" if unit else policy
        raise UsageError(
            f"--policy {said}: Spark cannot change the number of tasks while it runs, so no policy can; leave it out, and choose "
            "with --parallelism UNIT=N"
        )
    for name, n in parallelism.items():
        unit_plan = plan.units.get(name)
        if unit_plan is None:
            raise UsageError(plan.unknown(name))
        if isinstance(unit_plan.spout, WholeSplits) and each_alone(unit_plan):
            raise UsageError(
                f"--parallelism {name}={n}: with event time each file, or stretch of one, is a part of its own on Spark, so that its rows are "
                "not late behind those of others; leave it out"
            )
        most = unit_plan.max_parallelism
        if n < 1 or (most is not None and n > most):
            raise UsageError(f"unit {name!r} cannot have parallelism {n}: it may have 1 to {most or 'any number'}")
