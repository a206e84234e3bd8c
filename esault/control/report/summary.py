"""From what the driver knows to what people read: reports and live snapshots."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from esault.control.placement.placement import Cluster
from esault.control.run.driver import Driver
from esault.control.units.measurements import total
from esault.histogram import Histogram
from esault.report import Change, Checkpoints, Decision, Latency, Report, Restored, RootCounts, UnitReport, iso

__all__ = ["HostSnapshot", "Snapshot", "UnitSnapshot", "how_ended", "may_repeat", "report", "snapshot"]


@dataclass(frozen=True)
class UnitSnapshot:
    """One unit at one moment; counts are cumulative."""

    name: str
    kind: str
    sub_units: int
    tuples_in: int
    tuples_out: int
    backlog: int
    errors: int
    p50_ms: float
    p99_ms: float
    #: (done, total) where the source knows
    progress: tuple[float, float] | None
    #: incarnation -> process id
    processes: dict[int, int] = field(default_factory=dict)
    #: tuples that came when a bounded inbox was full
    dropped: int = 0
    dead_letters: int = 0
    #: elements whose state died with a process
    state_lost: int = 0
    #: of processing, all sub-units together
    busy_seconds: float = 0.0
    #: tuples whose window had closed
    late: int = 0
    #: of a unit that watermarks come to: seconds since the epoch up to which all has been seen to; None: none is known
    watermark: float | None = None


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class Snapshot:
    """The run at one moment, for live views and other terminals."""

    topology: str
    phase: str
    draining: bool
    now: float
    #: since tuples began to flow
    seconds: float
    units: tuple[UnitSnapshot, ...]
    roots_open: int
    roots_replayed: int
    deaths: int
    failure: str | None
    #: the newest decisions of policies, and changes that are on, for people
    scaling: tuple[str, ...] = ()
    free_slots: int = 0
    slots: int = 0
    #: changes that have ended
    changes: int = 0
    #: number of the newest complete checkpoint, and how often all went back to one
    checkpoint: int = 0
    restores: int = 0
    roots_emitted: int = 0
    roots_acked: int = 0
    #: by name; none where all is on one machine
    hosts: dict[str, HostSnapshot] = field(default_factory=dict)


def snapshot(driver: Driver, now: float) -> Snapshot:
    """The run as it is now."""
    units = []
    for name, unit in driver.units.items():
        counts = unit.measurements.counts
        latency = unit.measurements.histogram("latency" if unit.plan.kind == "bolt" else "end_to_end").summary_ms()
        units.append(
            UnitSnapshot(
                name=name,
                kind=unit.plan.kind,
                sub_units=len(unit.subs),
                tuples_in=counts.tuples_in,
                tuples_out=counts.tuples_out,
                backlog=counts.backlog,
                errors=counts.errors,
                p50_ms=latency["p50"],
                p99_ms=latency["p99"],
                progress=unit.measurements.progress if unit.plan.kind == "spout" else None,
                processes={r.incarnation: r.built.pid for r in unit.subs.values() if r.built is not None},
                dropped=counts.dropped,
                dead_letters=counts.dead_letters,
                state_lost=unit.measurements.state_lost,
                busy_seconds=counts.busy,
                late=counts.late,
                watermark=unit.measurements.watermark,
            )
        )
    all_counts = total(u.measurements.counts for u in driver.units.values())
    return Snapshot(
        topology=driver.plan.name,
        phase=driver.phase,
        draining=driver.draining,
        now=now,
        seconds=now - driver.running_since if driver.running_since is not None else 0.0,
        units=tuple(units),
        roots_open=all_counts.roots_open,
        roots_replayed=all_counts.roots_replayed,
        deaths=driver.deaths,
        failure=driver.failure,
        scaling=_scaling(driver),
        free_slots=driver.resources.free,
        slots=driver.resources.total,
        changes=sum(len(unit.changes) for unit in driver.units.values()),
        checkpoint=driver.checkpoints.newest,
        restores=len(driver.restores.all),
        roots_emitted=all_counts.roots_emitted,
        roots_acked=all_counts.roots_acked,
        hosts=_hosts(driver),
    )


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
        )
        for name, h in driver.resources.hosts.items()
    }


def _scaling(driver: Driver) -> tuple[str, ...]:
    since = driver.running_since or driver.started_at
    newest = driver.scaling.log[-2:]
    return tuple(f"{r.at - since:.1f} s, {r.unit}: {r.what} ({r.policy}: {r.reason}); {r.outcome}" for r in newest)


def how_ended(driver: Driver) -> str:
    """In the report's words; a run that has not ended is "running"."""
    if driver.failure is not None:
        return "failed"
    if driver.phase != "ended":
        return "running"
    return "drained" if driver.finished_in_order else "paused" if driver.paused else "stopped"


def may_repeat(driver: Driver) -> bool:
    """Return whether sinks may have got rows more than once: something was replayed, or a process died and was replaced."""
    if driver.settings.delivery == "eo":
        return False
    replayed = total(unit.measurements.counts for unit in driver.units.values()).roots_replayed
    return bool(driver.deaths or driver.died_late or replayed)


def report(driver: Driver, engine: str, ended: str, now: float) -> Report:
    """The whole run."""
    units: dict[str, UnitReport] = {}
    end_to_end = Histogram()
    since = driver.running_since if driver.running_since is not None else driver.started_at
    for name, unit in driver.units.items():
        counts = unit.measurements.counts
        end_to_end.merge(unit.measurements.histogram("end_to_end"))
        units[name] = UnitReport(
            tuples_in=counts.tuples_in,
            tuples_out=counts.tuples_out,
            arrivals=counts.arrivals,
            dropped=counts.dropped,
            late=counts.late,
            errors=counts.errors,
            dead_letters=counts.dead_letters,
            state_lost=unit.measurements.state_lost,
            dropped_frames=counts.dropped_frames,
            latency_ms=Latency(**unit.measurements.histogram("latency").summary_ms()),
            busy_seconds=counts.busy,
            parallelism=[(max(0.0, t - since), n) for t, n in unit.history],
            processes={str(r.incarnation): r.built.pid for r in unit.subs.values() if r.built is not None},
            backlog=counts.backlog,
            hosts={str(i): host for i, host in driver.places.of(name).items()},
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
    details: dict[str, Any] = {
        "changes": changes,
        "decisions": decisions,
        "deaths": driver.deaths,
        "failure": driver.failure,
        "checkpoints": Checkpoints(
            taken=driver.run_checkpoints.taken,
            bytes=driver.run_checkpoints.bytes,
            newest=driver.checkpoints.newest,
            last_seconds=driver.run_checkpoints.seconds,
            resumed_from=driver.run_checkpoints.resumed_from,
        ),
        "restores": [
            Restored(t=max(0.0, r.at - since), checkpoint=r.number, reason=r.why, seconds=r.seconds)
            for r in driver.restores.all
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
            lost=sum(u.measurements.roots_lost for u in driver.units.values()),
        ),
        **details,
    )
