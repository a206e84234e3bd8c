"""From what the driver knows to what people read: reports and live snapshots.

It is one module of over 300 lines: what both say of a unit, they say alike.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import field
from typing import Any

from esault.control.placement.placement import Cluster
from esault.control.report.objectives import reported, standing, sub_unit_seconds
from esault.control.report.unit_counts import counted
from esault.control.report.unit_graph import EdgeSnapshot, SubUnitSnapshot, edges, sinks, sub_units
from esault.control.run.driver import Driver
from esault.control.units.measurements import total
from esault.counters import RunCounts, UnitCounts, counter, values
from esault.elasticity.judge import NO_CHANGE
from esault.elasticity.objective import ObjectiveStatus
from esault.histogram import Histogram
from esault.messages.delivery import Delivery
from esault.messages.user_metrics import MetricReading
from esault.payload.json_text import not_finite
from esault.report import (
    BudgetSpent,
    Change,
    Checkpoints,
    Decision,
    HostCost,
    Latency,
    MissedHeartbeat,
    Report,
    Restored,
    RootCounts,
    UnitReport,
    iso,
)
from esault.value_class import value_class

__all__ = ["HostSnapshot", "Snapshot", "UnitSnapshot", "how_ended", "may_repeat", "metric_value", "report", "snapshot"]


#: units of which it is told why nothing is done to them, in a live view
MOST_STANDING = 4
#: seconds, upper bounds of durations
BOUNDS = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0),
)


@value_class(frozen=True, kw_only=True)
class UnitSnapshot(UnitCounts):
    """One unit at one moment; counts are cumulative."""

    name: str
    kind: str
    sub_units: int = counter("Parallelism: sub-units that the unit has.", "sub-units", gauge=True)
    #: fewest and most that it may have; None: as many as there are slots
    min_parallelism: int = 1
    max_parallelism: int | None = None
    p50_ms: float = 0.0
    p99_ms: float = 0.0
    #: those of `UnitDurations` that were seen, by name: upper bounds in seconds, counts between them, and sum, within 5 %
    durations: dict[str, tuple[tuple[float, ...], tuple[int, ...], float]] = field(default_factory=dict)
    #: (done, total) where the source knows
    progress: tuple[float, float] | None = None
    #: incarnation -> process id
    processes: dict[int, int] = field(default_factory=dict)
    #: of a unit that watermarks come to: seconds since the epoch up to which all has been seen to; None: none is known
    watermark: float | None = None
    #: of a chained bolt: the unit in whose processes it runs; empty else
    chained_to: str = ""
    edges: tuple[EdgeSnapshot, ...] = ()
    #: name, class and written paths of each
    sinks: tuple[tuple[str, str, str], ...] = ()
    #: hot keys that it splits now: unit that gets them -> key as text -> over how many sub-units
    split_keys: dict[str, dict[str, int]] = field(default_factory=dict)
    #: rows that each has committed, as far as sub-units have told
    landed: dict[str, int] = field(default_factory=dict)
    #: where it keeps dead letters, as the topology says
    dead_letter_paths: tuple[str, ...] = ()
    parts: tuple[SubUnitSnapshot, ...] = ()
    #: of a spout, by sub-unit: number and opening, seconds since the epoch, of the oldest batch that is not processed
    oldest_roots: dict[int, tuple[int, float]] = field(default_factory=dict)
    #: metrics of the user's own
    metrics: tuple[MetricReading, ...] = ()


#: phase of a run of which no process is there, until input comes
SCALED_TO_ZERO = "scaled to zero"


@value_class(frozen=True)
class HostSnapshot:
    """One host of a run on several."""

    slots: int
    free: int
    draining: bool
    #: such as "count/7"
    sub_units: tuple[str, ...]
    #: bytes that its living sub-units have sent to other hosts, by host
    sent: dict[str, int] = field(default_factory=dict)
    #: share of its processors that was busy of late; None: not known
    cpu: float | None = None
    #: other runs that share its slots: topology, priority (None: it keeps what it has), slots
    others: tuple[tuple[str, int | None, int], ...] = ()


@value_class(frozen=True, kw_only=True)
class Snapshot(RunCounts):
    """The run at one moment, for live views and other terminals."""

    topology: str
    #: identity of the run
    run: str = ""
    phase: str
    draining: bool
    now: float
    seconds: float = counter(
        "Seconds since tuples began to flow.", "seconds", default=0.0, gauge=True, metric="esault_running_seconds"
    )
    units: tuple[UnitSnapshot, ...]
    failure: str | None = None
    #: the newest decisions of policies, and why nothing is done to units now, for people
    scaling: tuple[str, ...] = ()
    #: latency objectives as they stand
    objectives: tuple[ObjectiveStatus, ...] = ()
    changes: int = counter("Changes of units' parallelism that have ended.", "changes")
    deaths: int = counter("Processes that died and were replaced.", "processes")
    restarts: int = counter("Restarts after transient errors of sinks and sources.", "restarts", default=0)
    unforked: int = counter("Sub-units that cannot be forked at present.", "sub-units", gauge=True, default=0)
    restores: int = counter("Times that all went back to a checkpoint.", "times")
    checkpoint: int = counter("Number of the newest complete checkpoint.", "number", gauge=True)
    checkpoint_at: float = counter(
        "When the newest complete checkpoint of this run was complete, seconds since the epoch; 0: there is none.",
        "seconds",
        default=0.0,
        gauge=True,
        metric="esault_checkpoint_timestamp_seconds",
    )
    checkpoint_seconds: float = counter(
        "Seconds that the newest complete checkpoint took.", "seconds", default=0.0, gauge=True
    )
    checkpoint_bytes: int = counter("Bytes that checkpoints have written.", "bytes", default=0)
    #: the newest complete ones: number, when, seconds it took, bytes it wrote, bytes of all that belongs to it
    checkpoints: tuple[tuple[int, float, float, int, int], ...] = ()
    slots: int = counter("Places for sub-units.", "slots", gauge=True)
    free_slots: int = counter("Places that are free.", "slots", gauge=True)
    #: by name; none where all is on one machine
    hosts: dict[str, HostSnapshot] = field(default_factory=dict)


def snapshot(driver: Driver, now: float, pause: Callable[[], object] = lambda: None) -> Snapshot:
    """Return the run as it is now. `pause` is called between two units: with many, this takes milliseconds."""
    units = []
    for each in counted(driver):
        pause()
        name, unit = each.name, driver.units[each.head or each.name]
        durations = each.durations
        latency = (durations.latency if each.head or unit.plan.kind == "bolt" else durations.end_to_end).summary_ms()
        if each.head:
            units.append(
                UnitSnapshot(
                    **values(UnitCounts, each.counts),
                    name=name,
                    kind="bolt",
                    sub_units=len(unit.subs),
                    p50_ms=latency["p50"],
                    p99_ms=latency["p99"],
                    durations={kind: (BOUNDS, *times.between(BOUNDS)) for kind, times in durations},
                    chained_to=each.head,
                )
            )
            continue
        units.append(
            UnitSnapshot(
                **values(UnitCounts, each.counts),
                name=name,
                kind=unit.plan.kind,
                sub_units=len(unit.subs),
                min_parallelism=unit.plan.min_parallelism,
                max_parallelism=unit.plan.max_parallelism,
                p50_ms=latency["p50"],
                p99_ms=latency["p99"],
                durations={kind: (BOUNDS, *times.between(BOUNDS)) for kind, times in durations},
                progress=unit.measurements.progress if unit.plan.kind == "spout" else None,
                processes={r.incarnation: r.built.pid for r in unit.subs.values() if r.built is not None},
                watermark=unit.measurements.watermark,
                edges=edges(unit.plan),
                sinks=sinks(unit.plan),
                split_keys=unit.measurements.split_keys,
                landed=unit.measurements.landed,
                dead_letter_paths=unit.plan.dead_letter_paths,
                parts=sub_units(driver, unit),
                oldest_roots=unit.measurements.oldest_roots,
                metrics=unit.measurements.metrics,
            )
        )
    return Snapshot(
        **values(RunCounts, total(u.measurements.counts for u in driver.units.values())),
        topology=driver.plan.name,
        run=driver.run,
        phase=driver.phase,
        draining=driver.draining,
        now=now,
        seconds=_seconds(driver, now),
        units=tuple(units),
        failure=driver.failure,
        scaling=(*(standing(each) for each in driver.scaling.objectives.statuses), *_scaling(driver)),
        objectives=driver.scaling.objectives.statuses,
        changes=sum(len(unit.changes) for unit in driver.units.values()),
        deaths=driver.deaths,
        restarts=driver.restarts.count,
        unforked=len(driver.unforked.why),
        restores=len(driver.restores.all),
        checkpoint=driver.checkpoints.newest,
        checkpoint_at=_checkpoint_at(driver),
        checkpoint_seconds=driver.run_checkpoints.seconds,
        checkpoint_bytes=driver.run_checkpoints.bytes,
        checkpoints=tuple(driver.run_checkpoints.newest_ones),
        slots=driver.places.total,
        free_slots=driver.places.free(),
        hosts=_hosts(driver),
    )


def _seconds(driver: Driver, now: float) -> float:
    """Return how long tuples have flowed: to the end of the run, as the report says it, not to that of its processes."""
    if driver.running_since is None:
        return 0.0
    return (driver.ended_at if driver.ended_at is not None else now) - driver.running_since


def _checkpoint_at(driver: Driver) -> float:
    completed = driver.run_checkpoints.completed
    return completed.completed_at if completed is not None and driver.run_checkpoints.taken else 0.0


def _costs(driver: Driver) -> dict[str, HostCost]:
    if not isinstance(driver.resources, Cluster):
        return {}
    return {name: HostCost(c.slot_seconds, c.slot_price, c.cost) for name, c in driver.resources.costs.items()}


def _hosts(driver: Driver) -> dict[str, HostSnapshot]:
    if not isinstance(driver.resources, Cluster):
        return {}
    here: dict[str, list[str]] = {name: [] for name in driver.resources.hosts}
    sent: dict[str, Counter[str]] = {name: Counter() for name in driver.resources.hosts}
    for unit in driver.units.values():
        for incarnation in unit.subs:
            host = driver.places.hosts.get(incarnation, "")
            if host in here:
                here[host].append(f"{unit.name}/{incarnation}")
                last = unit.measurements.last(incarnation)
                sent[host].update(last.usage.sent if last is not None and last.usage is not None else {})
    busy = {usage.name: usage.cpu for usage in driver.hosts}
    return {
        name: HostSnapshot(
            slots=h.slots,
            free=len(h.free),
            draining=h.draining,
            sub_units=tuple(here[name]),
            sent=dict(sent[name]),
            cpu=busy.get(name),
            others=h.others,
        )
        for name, h in driver.resources.hosts.items()
    }


def _scaling(driver: Driver) -> tuple[str, ...]:
    since = driver.running_since or driver.started_at
    newest = [r for r in driver.scaling.log if r.what != NO_CHANGE][-2:]
    lines = [f"{r.at - since:.1f} s, {r.unit}: {r.what} ({r.policy}: {r.reason}); {r.outcome}" for r in newest]
    unchanged = list(driver.scaling.standing.items())[:MOST_STANDING]
    lines += [f"now, {unit}: {NO_CHANGE} ({reason})" for unit, reason in unchanged]
    return tuple(lines)


def how_ended(driver: Driver) -> str:
    """Return the end of the run in the report's words; a run that has not ended is "running"."""
    if driver.failure is not None:
        return "failed"
    if driver.phase != "ended":
        return "running"
    return "drained" if driver.finished_in_order else "paused" if driver.paused else "stopped"


def may_repeat(driver: Driver) -> bool:
    """Return whether sinks may have got rows more than once: something was replayed, a process was replaced, or a checkpoint was damaged."""
    if driver.settings.delivery is Delivery.EXACTLY_ONCE:
        return driver.run_checkpoints.repeats
    replayed = total(unit.measurements.counts for unit in driver.units.values()).roots_replayed
    return bool(driver.deaths or driver.died_late or replayed)


def metric_value(value: Any) -> Any:
    """Return a value of the user's own metric as the report has it: a number; of a histogram, how many values there were, and their sum."""
    if isinstance(value, tuple):
        return {"count": sum(value[1]), "sum": metric_value(value[2])}
    if not math.isfinite(value):
        return not_finite(value)
    return int(value) if value == int(value) else value


def report(driver: Driver, engine: str, ended: str, now: float) -> Report:
    """The whole run."""
    units: dict[str, UnitReport] = {}
    end_to_end = Histogram()
    since = driver.running_since if driver.running_since is not None else driver.started_at
    for each in counted(driver):
        name, unit = each.name, driver.units[each.head or each.name]
        durations = each.durations
        end_to_end.merge(durations.end_to_end)
        measured: dict[str, Any] = {
            "latency_ms": Latency(**durations.latency.summary_ms()),
            "durations_ms": {kind: Latency(**times.summary_ms()) for kind, times in durations},
        }
        if each.head:
            units[name] = UnitReport(
                **values(UnitCounts, each.counts),
                **measured,
                parallelism=units[each.head].parallelism,
                chained_to=each.head,
            )
            continue
        units[name] = UnitReport(
            **values(UnitCounts, each.counts),
            **measured,
            parallelism=[(max(0.0, t - since), n) for t, n in unit.history],
            processes={str(r.incarnation): r.built.pid for r in unit.subs.values() if r.built is not None},
            hosts={str(i): host for i, host in driver.places.of(name).items()},
            metrics={str(read): metric_value(read.value) for read in unit.measurements.metrics},
        )
    changes = [
        Change(
            t=max(0.0, c.at - since),
            unit=c.unit,
            kind=c.kind,
            before=c.before,
            after=c.after,
            reason=c.reason,
            policy=c.policy,
            moved_keys=c.moved_keys,
            moved_bytes=c.moved_bytes,
            held_back_ms=1000 * c.held,
            total_ms=1000 * c.seconds,
            prepare_ms=1000 * c.prepared,
            dropped=c.dropped,
        )
        for unit in driver.units.values()
        for c in unit.changes
    ]
    counts = total(u.measurements.counts for u in driver.units.values())
    lost = counts.roots_open if driver.failure is not None else 0
    changes.sort(key=lambda change: change.t)
    decisions = [
        Decision(
            t=max(0.0, r.at - since),
            unit=r.unit,
            policy=r.policy,
            what=r.what,
            reason=r.reason,
            outcome=r.outcome,
            times=r.times,
        )
        for r in driver.scaling.log
    ]
    until = driver.ended_at if driver.ended_at is not None else now
    driver.scaling.look_at_objectives(driver.units, until, last=True)
    details: dict[str, Any] = {
        "objectives": reported(driver, until),
        "costs": _costs(driver),
        "budget": spent(driver, until - since, until),
        "changes": changes,
        "decisions": decisions,
        "deaths": driver.deaths,
        "restarts": driver.restarts.count,
        "failure": driver.failure,
        "checkpoints": Checkpoints(
            taken=driver.run_checkpoints.taken,
            bytes=driver.run_checkpoints.bytes,
            unaligned=driver.run_checkpoints.unaligned,
            newest=driver.checkpoints.newest,
            last_seconds=driver.run_checkpoints.seconds,
            resumed_from=driver.run_checkpoints.resumed_from,
        ),
        "restores": [
            Restored(t=max(0.0, r.at - since), checkpoint=r.number, reason=r.why, seconds=r.seconds)
            for r in driver.restores.all
        ],
        "missed_heartbeats": [
            MissedHeartbeat(
                t=max(0.0, s.at - since),
                unit=s.unit,
                sub_unit=s.incarnation,
                seconds=(s.until if s.until is not None else now) - s.at,
                where=s.where,
                threads=s.threads,
                replaced=s.replaced,
            )
            for s in driver.unresponsive.all
        ],
    }
    return Report(
        topology=driver.plan.name,
        engine=engine,
        started=iso(driver.started_at),
        seconds=(driver.ended_at if driver.ended_at is not None else now) - since,
        ended=ended,
        units=units,
        end_to_end_ms=Latency(**end_to_end.summary_ms()),
        roots=RootCounts(
            emitted=counts.roots_emitted,
            acked=counts.roots_acked,
            replayed=counts.roots_replayed,
            failed=lost,
            open=counts.roots_open - lost,
            lost=counts.roots_lost,
        ),
        counts=values(RunCounts, counts),
        **details,
    )


def spent(driver: Driver, seconds: float, until: float) -> BudgetSpent | None:
    """Return what the run has held in these seconds; None without a budget."""
    budget, cluster = driver.places.budget, driver.resources
    if budget.sub_units:
        mean = sub_unit_seconds(driver, until) / seconds if seconds > 0 else 0.0
        return BudgetSpent(str(budget), budget.sub_units, float(driver.places.most_held), mean)
    if budget.hourly and isinstance(cluster, Cluster):
        cost, hours = sum(each.cost for each in cluster.costs.values()), cluster.charged_seconds / 3600
        mean = cost / hours if hours else 0.0
        return BudgetSpent(str(budget), budget.hourly, cluster.most_hourly, mean, cost, budget.hourly * hours)
    return None
