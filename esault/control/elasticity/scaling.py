"""All that scales a run by itself: a judge for each unit that may change, over one sampler."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from esault.control.change import ChangeRecord
from esault.control.elastic_unit import ElasticUnit
from esault.control.elasticity.judge import DecisionRecord, Judge
from esault.control.elasticity.policy import DEFAULT, make
from esault.control.elasticity.sampler import Sampler
from esault.control.elasticity.view import View
from esault.errors import UsageError
from esault.messages.probe import HostUsage, ProbeReading
from esault.topology.plan import Plan, UnitPlan

__all__ = ["EVERY_UNIT", "Scaling", "check_policies"]

#: in place of a unit's name: the policy of all that are not named
EVERY_UNIT = ""
#: seconds over which rates are taken where a policy does not say
WINDOW = 0.5


def check_policies(plan: Plan, policies: Mapping[str, str]) -> None:
    """Refuse what cannot be. Raises UsageError with one clear line."""
    for name, spec in policies.items():
        policy = make(spec)
        if name == EVERY_UNIT:
            continue
        unit = plan.units.get(name)
        if unit is None:
            raise UsageError(f"there is no unit {name!r}; there are: {', '.join(plan.units)}")
        if policy is not None and unit.kind == "spout":
            raise UsageError(f"unit {name!r} is a spout: its parts are dealt out at the start, no policy can scale it")
        if policy is not None and unit.objects == "unit":
            raise UsageError(f"unit {name!r} has one object (grouping single): no policy can scale it")


def _may_change(unit: UnitPlan) -> bool:
    fixed = unit.max_parallelism is not None and unit.max_parallelism <= unit.min_parallelism
    return unit.kind == "bolt" and unit.objects != "unit" and not fixed


class Scaling:
    """Takes what is measured; at each tick asks the policies whose time has come."""

    def __init__(
        self, plan: Plan, policies: Mapping[str, str], probe_every: float, notice: Callable[[str], None]
    ) -> None:
        """`policies`: specs by unit, `EVERY_UNIT` for the rest. Raises UsageError."""
        check_policies(plan, policies)
        self._plan = plan
        self._probe_every = probe_every
        self.sampler = Sampler()
        self.judges: dict[str, Judge] = {}
        self._windows: dict[str, float] = {}
        self._due: dict[str, float] = {}
        #: the paper's first table has cells that are halved; all others have equal ones
        self.halved: set[str] = set()
        for name, unit in plan.units.items():
            spec = policies.get(name, policies.get(EVERY_UNIT, DEFAULT))
            if spec.partition(":")[0] == "esault" and unit.kind == "bolt":
                self.halved.add(name)
            policy = make(spec)
            if policy is None or not _may_change(unit):
                continue
            self.judges[name] = Judge(name, policy, spec, notice)
            self._windows[name] = getattr(policy, "window", WINDOW)
        self._spouts = {name: self._ancestors(name) for name in plan.units}

    def _ancestors(self, name: str) -> tuple[str, ...]:
        found: dict[str, None] = {}
        seen: set[str] = set()
        todo = list(self._plan.senders(name))
        while todo:
            sender = todo.pop()
            if sender in seen:
                continue
            seen.add(sender)
            if self._plan.units[sender].kind == "spout":
                found[sender] = None
            todo += self._plan.senders(sender)
        return tuple(found)

    def period(self, name: str) -> float:
        """Seconds between two probes to a unit's sub-units, and between two looks at it."""
        return self.judges[name].policy.probe_period or self._probe_every

    @property
    def shortest_period(self) -> float | None:
        """Of all units; None when nobody is judged."""
        return min(map(self.period, self.judges), default=None)

    def targets(self, units: Mapping[str, ElasticUnit]) -> dict[int, tuple[str, float]]:
        """Whom to probe: incarnation -> (data endpoint, seconds between two probes)."""
        return {
            record.incarnation: (record.built.endpoint, self.period(name))
            for name in self.judges
            for record in units[name].subs.values()
            if record.started_at is not None and record.built is not None and not record.leaving and not record.stopped
        }

    def probed(self, readings: Iterable[ProbeReading]) -> None:
        """What has happened to probes."""
        self.sampler.probed(readings)

    def decide(
        self,
        units: Mapping[str, ElasticUnit],
        now: float,
        since_start: float,
        hosts: tuple[HostUsage, ...],
        free_slots: Callable[[], int],
    ) -> None:
        """Ask every policy whose time has come."""
        due = [name for name in self.judges if now >= self._due.get(name, 0.0)]
        if not due:
            return
        self.sampler.forget({i for unit in units.values() for i in unit.subs})
        for name in due:
            period = self.period(name)
            self._due[name] = max(self._due.get(name, now) + period, now + period / 2)
            window = self._windows[name]
            views = {n: self.sampler.unit(u, self._spouts[n], now, window, consume=n == name) for n, u in units.items()}
            judge = self.judges[name]
            view = View(now, since_start, views[name], views, hosts, free_slots(), judge.refusals)
            judge.decide(view, units[name], now)

    def changed(self, name: str, record: ChangeRecord) -> None:
        """A change has ended."""
        judge = self.judges.get(name)
        if judge is not None:
            judge.changed(record)

    @property
    def log(self) -> list[DecisionRecord]:
        """All decisions, in order of time."""
        return sorted((r for j in self.judges.values() for r in j.log), key=lambda r: r.at)
