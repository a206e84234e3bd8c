"""The report of a run: `report.json`, and the same as objects.

`schema: 1`; fields are added, never changed. It is one module of over 300 lines: the fields, and what they read like.
"""

from __future__ import annotations

import json
from dataclasses import field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from esault.counters import UnitCounts, counted, declared
from esault.value_class import value_class

__all__ = [
    "BudgetSpent",
    "Change",
    "Checkpoints",
    "Decision",
    "HostCost",
    "Latency",
    "Objective",
    "Report",
    "Restored",
    "RootCounts",
    "UnitReport",
]

SCHEMA = 1
#: changes that are told in words, the newest; report.json has all
_SHOWN = 10


@value_class(frozen=True)
class Latency:
    """Milliseconds, within 5 %."""

    p50: float = 0.0
    p99: float = 0.0
    max: float = 0.0


@value_class(frozen=True)
class UnitReport(UnitCounts):
    """One unit, all its sub-units together: its counts, and more."""

    #: from the packing of the frame a tuple came in to the end of its processing here
    latency_ms: Latency = field(default_factory=Latency)
    #: all durations that were measured, by name: `latency` again, `end_to_end`, `ack_latency` of a spout's batches
    durations_ms: dict[str, Latency] = field(default_factory=dict)
    #: (seconds since the start, sub-units)
    parallelism: list[tuple[float, int]] = field(default_factory=list)
    #: process ids of the sub-units that live
    processes: dict[str, int] = field(default_factory=dict)
    #: host by sub-unit, of all that there were
    hosts: dict[str, str] = field(default_factory=dict)
    #: of a chained bolt: the unit in whose processes it ran; empty else
    chained_to: str = ""
    #: metrics of the user's own, by name and labels
    metrics: dict[str, Any] = field(default_factory=dict)


@value_class(frozen=True)
class RootCounts:
    """Spout batches, as the ack ledger sees them."""

    emitted: int = 0
    acked: int = 0
    replayed: int = 0
    #: given up when the topology failed
    failed: int = 0
    open: int = 0
    #: open when their spout's process died: its successor reads them again as new roots, where the source can seek
    lost: int = 0


@value_class(frozen=True)
class Change:
    """One change of a unit's parallelism."""

    t: float
    unit: str
    kind: str
    before: int
    after: int
    reason: str
    policy: str
    moved_keys: int = 0
    moved_bytes: int = 0
    held_back_ms: float = 0.0
    #: from the request to the end
    total_ms: float = 0.0
    #: of that, until new sub-units stood ready: nothing waits in that time
    prepare_ms: float = 0.0
    #: why it was dropped, and nothing moved; empty if it was not
    dropped: str = ""


@value_class(frozen=True)
class Decision:
    """Something that a policy wanted for a unit, or had to say."""

    t: float
    unit: str
    policy: str
    #: such as "rescale: 1 -> 4", "action" (refused), "advice", "no change"
    what: str
    reason: str
    #: "done", "begun", "dropped: ...", "refused: ...", "said", "failed"
    outcome: str
    #: how often in a row
    times: int = 1


@value_class(frozen=True)
class Restored:
    """All went back to a checkpoint."""

    t: float
    #: number of the checkpoint; 0: the beginning
    checkpoint: int
    reason: str
    #: from the first word of the cause until tuples flowed again; None: they did not
    seconds: float | None


@value_class(frozen=True)
class MissedHeartbeat:
    """A sub-unit said nothing for long: a call of user code that did not return in that time, or a frozen process."""

    #: when it was heard last
    t: float
    unit: str
    sub_unit: int
    #: until it was heard again, or was gone
    seconds: float
    #: the innermost line that is not the engine's, as "process, slow.py:12"
    where: str
    #: the stacks of all its threads, as they were found after some seconds; empty: it did not answer
    threads: str
    #: its process was ended and replaced, see `heartbeat_timeout`
    replaced: bool


@value_class(frozen=True)
class Objective:
    """A latency objective, and whether the run kept it."""

    #: as it was written, such as "p99 < 100 ms"
    objective: str
    #: no more tuples were slow than may be
    kept: bool
    #: that the objective's share of tuples took at most; None: nothing came to its end
    measured_ms: float | None
    #: that came to their end, and those of them that took longer
    tuples: int
    slow: int
    #: the share that was slow over the share that may be: 1 has spent the whole error budget
    burn_rate: float
    #: in which tuples came to their end, and in which more were slow than may be
    seconds: int
    seconds_over: int
    #: for which sub-units of all units were there: what it cost
    sub_unit_seconds: float

    def __str__(self) -> str:
        if self.measured_ms is None:
            return f"objective {self.objective}: nothing came to its end"
        burnt = f"{self.burn_rate:.0%} of" if self.burn_rate < 10 else f"{self.burn_rate:,.0f} times"
        return (
            f"objective {self.objective}: {'kept' if self.kept else 'missed'}, at {in_words(self.measured_ms)}; "
            f"{burnt} the error budget spent, over it in {self.seconds_over} of {self.seconds} s; "
            f"cost: {self.sub_unit_seconds:,.0f} sub-unit seconds"
        )


@value_class(frozen=True)
class HostCost:
    """The cost of a run on one host."""

    #: seconds for which sub-units and ack servers had slots there, added up
    slot_seconds: float
    #: what a slot costs there an hour, as `esault node --slot-price` says
    slot_price: float
    #: in that money
    cost: float


@value_class(frozen=True)
class BudgetSpent:
    """A budget, and what the run held of it."""

    #: as it was written, such as "8" or "3.5/h"
    budget: str
    #: sub-units, or money an hour
    limit: float
    #: held at most at a time, and on average
    most: float
    mean: float
    #: money, and what could have been spent in this time; 0 where the budget is in sub-units
    cost: float = 0.0
    allowed: float = 0.0

    def __str__(self) -> str:
        unit = "/h" if self.allowed else " sub-units"
        money = f"; {self.cost:.4g} spent of {self.allowed:.4g}" if self.allowed else ""
        return f"budget {self.budget}: at most {self.most:.4g}{unit} at a time, {self.mean:.3g}{unit} on average{money}"


@value_class(frozen=True)
class Checkpoints:
    """The checkpoints of a run, to which all could go back."""

    #: complete ones
    taken: int = 0
    bytes: int = 0
    #: number of the newest, and from its beginning until it was complete
    newest: int = 0
    last_seconds: float = 0.0
    #: the one that the run went on from; 0: it began anew
    resumed_from: int = 0
    #: where they are; empty: there are none
    directory: str = ""
    #: unaligned ones: they hold rows in flight, that waited before slow units
    unaligned: int = 0


@value_class(frozen=True)
class Report:
    """A run: `report.units["count"].tuples_in`, `report.roots.replayed`, `report.changes`."""

    topology: str
    engine: str
    started: str
    seconds: float
    #: "drained", "paused" (by hand, at a checkpoint), "stopped" (at once), or "failed"
    ended: str
    units: dict[str, UnitReport]
    end_to_end_ms: Latency
    roots: RootCounts
    #: all counters of the run, by name
    counts: dict[str, float] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    objectives: list[Objective] = field(default_factory=list)
    #: what the run has cost by host, of those that there were; empty where all was on one machine
    costs: dict[str, HostCost] = field(default_factory=dict)
    #: with a budget
    budget: BudgetSpent | None = None
    #: processes that died and were replaced
    deaths: int = 0
    #: restarts after transient errors of sinks and sources
    restarts: int = 0
    #: with checkpoints: those, and how often all went back to one
    checkpoints: Checkpoints = field(default_factory=Checkpoints)
    restores: list[Restored] = field(default_factory=list)
    #: sub-units that said nothing for long
    missed_heartbeats: list[MissedHeartbeat] = field(default_factory=list)
    #: why the run failed
    failure: str | None = None
    #: rows of `Collect` sinks by the sink's name; not in report.json
    collected: dict[str, list[Any]] = field(default_factory=dict)
    #: where sinks that have a `path` wrote, by the sink's name; not in report.json
    landed: dict[str, str] = field(default_factory=dict)
    schema: int = SCHEMA

    def as_dict(self) -> dict[str, Any]:
        """As it stands in report.json."""

        def plain(value: Any) -> Any:
            if hasattr(value, "__dataclass_fields__"):
                return {k: plain(getattr(value, k)) for k in value.__dataclass_fields__}
            if isinstance(value, dict):
                return {k: plain(v) for k, v in value.items()}
            if isinstance(value, (list, tuple)):
                return [plain(v) for v in value]
            return round(value, 6) if isinstance(value, float) else value

        data: dict[str, Any] = plain(self)
        del data["collected"], data["landed"]
        if self.engine == "spark":  # which has none
            data["roots"] = None
        for change in data["changes"]:
            change["from"], change["to"] = change.pop("before"), change.pop("after")
        return {"schema": data.pop("schema"), **data}

    def write(self, path: str | Path) -> None:
        """Write report.json: whole or not at all. Raises OSError."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(path.name + ".new")
        try:
            temporary.write_text(json.dumps(self.as_dict(), indent=2) + "\n", encoding="utf-8")
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise

    def _repr_html_(self) -> str:
        """Return a table of the units for a notebook, and below it what `str` says besides."""
        import html  # a notebook is where few runs are

        rows = [("unit", "sub-units", "in", "out", "p50 ms", "p99 ms", "errors")]
        rows += [
            (
                *(
                    name,
                    str(unit.parallelism[-1][1]) if unit.parallelism else "",
                    f"{unit.tuples_in:,}",
                    f"{unit.tuples_out:,}",
                ),
                *(f"{unit.latency_ms.p50:.2f}", f"{unit.latency_ms.p99:.2f}", f"{unit.errors:,}"),
            )
            for name, unit in self.units.items()
        ]
        body = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
        head, *more = str(self).splitlines()
        rest = html.escape("\n".join(line.strip() for line in more[len(self.units) :]))
        failure = f"<p>{html.escape(self.failure)}</p>" if self.failure else ""
        return f"<p>{html.escape(head)}</p>{failure}<table>{body}</table><pre>{rest}</pre>"

    def __str__(self) -> str:
        lines = [f"{self.topology}: {self.ended} after {self.seconds:.1f} s on the {self.engine} engine"]
        for name, unit in self.units.items():
            line = f"  {name}: {unit.tuples_out:,} out"
            if unit.tuples_in or not unit.tuples_out:  # of a spout there is nothing in
                line = f"  {name}: {unit.tuples_in:,} in, {unit.tuples_out:,} out"
            for what, each in declared(UnitCounts).items():
                if each.trouble and getattr(unit, what):
                    line += f", {getattr(unit, what):,} {what.replace('_', ' ')}"
            if unit.split_tuples:
                line += f", {unit.split_tuples:,} of them of hot keys that were split"
            lines.append(line)
        e2e, roots = self.end_to_end_ms, self.roots
        lines.append(f"  end to end: p50 {e2e.p50:.2f} ms, p99 {e2e.p99:.2f} ms, max {e2e.max:.2f} ms")
        lines += [f"  {each}" for each in self.objectives]
        if self.budget is not None:
            lines.append(f"  {self.budget}")
        if any(each.slot_price for each in self.costs.values()):
            of = [
                f"{name} {each.cost:.4g} ({each.slot_seconds:,.0f} slot seconds)" for name, each in self.costs.items()
            ]
            lines.append(f"  cost: {sum(each.cost for each in self.costs.values()):.4g}: {', '.join(of)}")
        if self.engine != "spark":
            lines.append(f"  {_batches(roots)}")
        if len(self.changes) > _SHOWN:
            lines.append(f"  {counted(len(self.changes) - _SHOWN, 'change')} of parallelism, and at last:")
        lines += [
            f"  {c.t:.1f} s, {c.unit}: {c.kind}, "
            + (
                f"dropped: {c.dropped}; it stays at {counted(c.after, 'sub-unit')} ({c.policy}: {c.reason or 'asked for'})"
                if c.dropped
                else f"{c.before} -> {counted(c.after, 'sub-unit')} ({c.policy}: {c.reason or 'asked for'}); "
                + (
                    f"{counted(c.moved_keys, 'key')} moved, none of their tuples held back longer than {c.held_back_ms:.1f} ms"
                    if c.moved_keys
                    else "no keys to move"
                )
            )
            for c in self.changes[-_SHOWN:]
        ]
        if self.deaths:
            lines.append(
                f"  {counted(self.deaths, 'process', 'processes')} died and {'were' if self.deaths != 1 else 'was'} replaced"
            )
        if self.restarts:
            lines.append(f"  {counted(self.restarts, 'restart')} after transient errors")
        kept = self.checkpoints
        if kept.taken:
            lines.append(
                f"  {counted(kept.taken, 'checkpoint')}, {kept.bytes:,} bytes, the last one in {1000 * kept.last_seconds:.0f} ms"
                + f", {kept.unaligned:,} with rows in flight" * bool(kept.unaligned)
            )
        lines += [
            f"  {r.t:.1f} s: all went back to {f'checkpoint {r.checkpoint}' if r.checkpoint else 'the beginning'} ({r.reason})"
            + (f"; tuples flowed again after {r.seconds:.2f} s" if r.seconds is not None else "")
            for r in self.restores
        ]
        lines += [
            f"  {s.t:.1f} s: no word from {s.unit}/{s.sub_unit} for {s.seconds:.1f} s"
            + f" ({s.where})" * bool(s.where)
            + "; it was replaced" * s.replaced
            for s in self.missed_heartbeats[-_SHOWN:]
        ]
        if self.ended == "paused":
            lines.append(f"  paused at checkpoint {kept.newest} in {kept.directory}: --resume goes on from there")
        lines += [f"  landed by {name}: {path}" for name, path in self.landed.items()]
        return "\n".join(lines)


def in_words(ms: float) -> str:
    """Return a latency for people, in milliseconds or seconds."""
    return f"{ms:.3g} ms" if ms < 999.5 else f"{ms / 1000:,.1f} s"


def iso(seconds: float) -> str:
    """Seconds since the epoch as UTC, in ISO 8601."""
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _batches(roots: RootCounts) -> str:
    """Roots in the words of those who have not met them: what was read together is a batch."""
    text = f"{counted(roots.emitted, 'batch', 'batches')} read, "
    text += "all processed" if roots.acked == roots.emitted else f"{roots.acked:,} processed"
    for count, what in ((roots.open, "not finished"), (roots.failed, "given up"), (roots.replayed, "sent again")):
        if count:
            text += f", {count:,} {what}"
    if roots.lost:
        text += f", {roots.lost:,} open when their spout's process ended, and read again where the source can seek"
    return text
