"""Rounds in which sub-units may be moved to other hosts: what the policies `migration` and `random` have in common.

Each look takes a report of every sub-unit. Once in `round` seconds candidates are named, and the first that have a
feasible destination (destination.py) are moved. While any unit changes there are no rounds, and a new window begins
for all when it is over. Nothing is scaled.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from esault.elasticity.action import Action, Advise, Migrate
from esault.elasticity.estimators.degradation import reported
from esault.elasticity.policies.destination import planned
from esault.elasticity.view import RunView, Sample
from esault.errors import UsageError
from esault.messages.probe import HostUsage
from esault.value_class import value_class

__all__ = ["MigrationRounds", "Replica", "Reports"]

#: tuples a second, in or out, and bytes a second, read or written, at which a host counts as full. They only help to
#: choose among hosts that are feasible anyway
NETWORK_FULL = 10_000.0
DISK_FULL = 200e6


@value_class(frozen=True)
class Replica:
    """A sub-unit by what stays the same when it is moved."""

    unit: str
    #: its ranges; where it has none, its number
    of: Hashable
    copy: int

    @property
    def group(self) -> Hashable:
        """Equal for replicas of the same ranges."""
        return self.unit, self.of


@dataclass
class Reports:
    """The reports of one sub-unit in this window."""

    #: seconds, oldest first
    latencies: list[float] = field(default_factory=list)
    #: by resource, added up over so many reports
    used: dict[str, float] = field(default_factory=dict)
    count: int = 0

    def add(self, latency: float | None, usage: Mapping[str, float]) -> None:
        """One more."""
        if latency is not None:
            self.latencies.append(latency)
        for resource, amount in usage.items():
            self.used[resource] = self.used.get(resource, 0.0) + amount
        self.count += 1

    @property
    def usage(self) -> dict[str, float]:
        """The mean of the window, by resource (over which time is not said)."""
        return {resource: amount / self.count for resource, amount in self.used.items()}


@dataclass
class MigrationRounds:
    """Times in seconds. A host is as full as the sum of what its sub-units report."""

    #: units whose number of sub-units is fixed are its too
    moves_only: ClassVar[bool] = True

    #: seconds between two reports of each sub-unit
    period: float = 1.0
    #: seconds between two rounds in which sub-units may be moved
    round: float = 10.0
    #: most migrations that a round begins; 0: no limit. A unit changes once at a time, so the engine refuses a second
    #: one of the same unit in a round
    limit: int = 1
    #: whether the destination must not have less processor time left than the source
    cpu: bool = True
    #: the same of memory; with it sub-units of like size only go where fewer are
    memory: bool = True
    #: the same of tuples in and of tuples out
    network: bool = True
    #: the same of bytes read and of bytes written
    disk: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.period <= self.round:
            raise UsageError(
                f"period={self.period:g} must be above 0, and no longer than round={self.round:g}: a round judges the "
                "reports of several periods"
            )
        if not (self.cpu or self.memory or self.network or self.disk):
            raise UsageError(
                "without cpu, memory, network and disk no host is better than another: leave one of them true"
            )
        #: when this window began; None before the first look
        self._since: float | None = None
        self._reports: dict[Replica, Reports] = {}
        self._moved_at: dict[Replica, float] = {}
        #: planned, not seen there yet: replica -> host
        self._planned: dict[Replica, str] = {}
        self._advised = False

    def candidates(
        self, view: RunView, reports: Mapping[Replica, Reports], moved_at: Mapping[Replica, float]
    ) -> list[Replica]:
        """Return the replicas to move, in order. `reports`: of all that may be; `moved_at`: when they were moved last."""
        raise NotImplementedError

    def because(self, reports: Reports) -> str:
        """Return the reason for this candidate, in words."""
        raise NotImplementedError

    def decide(self, view: RunView) -> Sequence[Action]:
        """Take the reports; where a round is due, what it moves."""
        if len(view.hosts) < 2:
            return self._nowhere(view)
        if any(unit.changing for unit in view.units.values()):
            self._begin(view.now)
            return ()
        ended = max((u.changed_at for u in view.units.values() if u.changed_at is not None), default=None)
        if self._since is None:
            self._since = view.now - self.period
        if ended is not None and ended > self._since:
            self._begin(ended)
        # Under the name of each replica the samples of all replicas are told again.
        units = {name: unit for name, unit in view.units.items() if not unit.plan.replica_index}
        now = {self._replica(name, s): s for name, unit in units.items() for s in unit.samples}
        self._arrived(now, view.now if ended is None else ended)
        for replica, sample in now.items():
            if sample.window > 0:
                self._reports.setdefault(replica, Reports()).add(_latency(sample), self._usage(sample))
        # A look may come a little early or late.
        if view.now < self._since + self.round - self.period / 2:
            return ()
        actions = self._round(view, now)
        self._begin(view.now)
        return actions

    def _nowhere(self, view: RunView) -> Sequence[Action]:
        if self._advised:
            return ()
        self._advised = True
        where = f"only the host {view.hosts[0].name!r} is known" if view.hosts else "no host is known"
        name = view.managed[0] if view.managed else ""
        return [
            Advise(
                f"{where}: there is nowhere to move sub-units to, and this policy does nothing else. It needs a run over "
                "several hosts; on one, use probe",
                unit=name,
            )
        ]

    def _begin(self, at: float) -> None:
        """A new window for all, also for those that were not moved (not said; rounds wait for all anyway)."""
        self._since = at
        self._reports.clear()

    @staticmethod
    def _replica(unit: str, sample: Sample) -> Replica:
        return Replica(unit, sample.ranges or sample.sub_unit, sample.replica)

    def _arrived(self, now: Mapping[Replica, Sample], ended: float) -> None:
        """Nothing changes: what was planned is done, or was given up."""
        for replica, host in self._planned.items():
            if replica in now and now[replica].host == host:
                self._moved_at[replica] = ended
        self._planned.clear()
        for gone in self._moved_at.keys() - now.keys():
            del self._moved_at[gone]
        for gone in self._reports.keys() - now.keys():
            del self._reports[gone]

    def _usage(self, sample: Sample) -> dict[str, float]:
        used: dict[str, float] = {}
        if self.cpu:
            # Where the runtime cannot tell, one thread that is busy takes one processor.
            used["cpu"] = sample.busy if sample.cpu is None else sample.cpu
        if self.memory:
            used["memory"] = float(sample.memory)
        if self.network:
            used |= {"network in": sample.arrivals, "network out": sample.emitted}
        if self.disk:
            used |= {"disk read": sample.read, "disk written": sample.written}
        return used

    @staticmethod
    def _capacity(hosts: Sequence[HostUsage], most_memory: float) -> dict[str, dict[str, float]]:
        """Return the capacity of each host, which is 100 %; of a host that does not tell its memory, what the largest other has."""
        memory = max((h.memory_total for h in hosts), default=0) or max(1.0, most_memory)
        return {
            h.name: {
                "cpu": float(max(1, h.cores)),
                "memory": float(h.memory_total or memory),
                "network in": NETWORK_FULL,
                "network out": NETWORK_FULL,
                "disk read": DISK_FULL,
                "disk written": DISK_FULL,
            }
            for h in hosts
        }

    def _round(self, view: RunView, now: Mapping[Replica, Sample]) -> Sequence[Action]:
        known = {replica: self._reports[replica] for replica in now if replica in self._reports}
        usage = {replica: reports.usage for replica, reports in known.items()}
        managed = set(view.managed)
        free = {replica: reports for replica, reports in known.items() if replica.unit in managed}
        moves = planned(
            self.candidates(view, free, self._moved_at),
            {replica: now[replica].host for replica in known},
            {replica: replica.group for replica in known},
            usage,
            [h.name for h in view.hosts],
            self.limit,
            self._capacity(view.hosts, sum(u.get("memory", 0.0) for u in usage.values())),
        )
        self._planned = {move.replica: move.destination for move in moves}
        return [
            Migrate(
                f"{self.because(known[m.replica])}; host {m.source} is at {m.before[1]:.0%} ({m.before[0]}), "
                f"{m.destination} will be at {m.after[1]:.0%} ({m.after[0]})",
                now[m.replica].sub_unit,
                m.destination,
                unit=m.replica.unit,
            )
            for m in moves
        ]


def _latency(sample: Sample) -> float | None:
    """The mean of what was measured since the last report (3.1): of the probes that came back; else what is known of it."""
    delays = [probe.back - probe.sent for probe in sample.probes if probe.back is not None]
    return reported(delays) if delays else sample.latency
