"""All metrics of a run at one moment, for what exports them: the run's, its units', and those of the user's own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from esault.control.report.summary import Snapshot, UnitSnapshot
from esault.counters import Counter, UnitDurations, declared

__all__ = ["MetricFamily", "families"]


@dataclass(frozen=True)
class MetricFamily:
    """One metric: a value for each set of labels."""

    name: str
    #: "counter", "gauge", "histogram", or "summary" with a label `quantile`
    kind: str
    meaning: str
    unit: str = ""
    #: of a histogram, a value is (upper bounds, counts between them, sum)
    points: list[tuple[dict[str, str], Any]] = field(default_factory=list)


def families(snapshot: Snapshot) -> Iterator[MetricFamily]:
    """Yield each metric of a run, with its points."""
    run = {"topology": snapshot.topology}
    for name, counter in declared(Snapshot).items():
        family = _family(name, counter)
        family.points.append((run, getattr(snapshot, name)))
        yield family
    for name, counter in declared(UnitSnapshot).items():
        family = _family(name, counter)
        family.points.extend(({**run, "unit": unit.name}, getattr(unit, name)) for unit in snapshot.units)
        yield family
    for name, duration in UnitDurations.declared().items():
        metric = duration.metric or f"esault_{name}_seconds"
        found = [unit for unit in snapshot.units if name in unit.durations]
        points = [({**run, "unit": unit.name}, unit.durations[name]) for unit in found]
        yield MetricFamily(metric, "histogram", duration.meaning, "seconds", points)
    yield from _measured(snapshot, run)
    yield from _of_users(snapshot, run)


def _family(name: str, counter: Counter) -> MetricFamily:
    kind = "gauge" if counter.gauge else "counter"
    return MetricFamily(counter.metric or f"esault_{name}", kind, counter.meaning, counter.unit)


def _measured(snapshot: Snapshot, run: dict[str, str]) -> Iterator[MetricFamily]:
    latency = MetricFamily(
        "esault_latency_seconds",
        "summary",
        "Of a bolt's tuples, from their sending to the end of their processing, over the whole run.",
        "seconds",
    )
    lag = MetricFamily("esault_lag", "gauge", "What a source still has to be read, in its own measure, where it knows.")
    watermark = MetricFamily(
        "esault_watermark_seconds",
        "gauge",
        "Event time up to which a unit has seen to all, seconds since the epoch, where there is one.",
        "seconds",
    )
    oldest = MetricFamily(
        "esault_oldest_root_seconds",
        "gauge",
        "Of a spout: how long its oldest batch has been under way that is not processed; 0: there is none.",
        "seconds",
    )
    for unit in snapshot.units:
        labels = {**run, "unit": unit.name}
        if unit.kind == "bolt":
            for quantile, ms in (("0.5", unit.p50_ms), ("0.99", unit.p99_ms)):
                latency.points.append(({**labels, "quantile": quantile}, ms / 1000))
        else:
            ages = [snapshot.now - opened for _, opened in unit.oldest_roots.values()]
            oldest.points.append((labels, max(0.0, *ages) if ages else 0.0))
        if unit.progress is not None:
            lag.points.append((labels, max(0.0, unit.progress[1] - unit.progress[0])))
        if unit.watermark is not None:
            watermark.points.append((labels, unit.watermark))
    yield from (latency, lag, watermark, oldest)
    yield from _objectives(snapshot, run)


def _objectives(snapshot: Snapshot, run: dict[str, str]) -> Iterator[MetricFamily]:
    """Yield how far latency objectives are kept."""
    tuples = MetricFamily(
        "esault_objective_tuples", "counter", "Tuples that came to their end under a latency objective."
    )
    slow = MetricFamily("esault_objective_slow", "counter", "Tuples of these that took longer than the objective says.")
    burn = MetricFamily(
        "esault_objective_burn_rate",
        "gauge",
        "Share of tuples that were slow of late over the share that may be: above 1 the objective is missed.",
    )
    for each in snapshot.objectives:
        labels = {**run, "objective": str(each.objective)}
        tuples.points.append((labels, each.tuples))
        slow.points.append((labels, each.slow))
        if each.recent_burn_rate is not None:
            burn.points.append((labels, each.recent_burn_rate))
    yield from (tuples, slow, burn)


def _of_users(snapshot: Snapshot, run: dict[str, str]) -> Iterator[MetricFamily]:
    """Yield metrics of the user's own. A name has the kind that it has in the first unit; others of it are left out."""
    found: dict[str, MetricFamily] = {}
    for unit in snapshot.units:
        for each in unit.metrics:
            family = found.setdefault(each.name, MetricFamily(each.name, each.kind, each.description or each.name))
            if family.kind == each.kind:
                family.points.append(({**run, "unit": unit.name, **dict(each.labels)}, each.value))
    yield from found.values()
