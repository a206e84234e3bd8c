"""All that scales a run by itself: a judge for each unit that may change, over one sampler.

It is one module of over 300 lines: which unit has which judge, and when each is asked, is decided here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, TypeGuard

from esault.elasticity.first_reports import LENGTH, FirstReports
from esault.elasticity.judge import Ask, DecisionRecord, Judge
from esault.elasticity.measured import MeasuredUnit, latencies
from esault.elasticity.objective import ObjectiveTracker, parsed
from esault.elasticity.policy import DEFAULT, Policy, TopologyPolicy, make
from esault.elasticity.sampler import Sampler
from esault.elasticity.totals import Totals
from esault.elasticity.view import RunView, UnitView, View
from esault.errors import UsageError
from esault.histogram import Histogram
from esault.messages.change_record import ChangeRecord
from esault.messages.probe import HostUsage, ProbeReading
from esault.messages.status import Status
from esault.topology.plan import Plan, UnitPlan
from esault.topology.windowed_spout import WindowedSpout

__all__ = ["EVERY_UNIT", "FIRST_EVERY", "Scaling", "check_policies"]

#: in place of a unit's name: the policy of all that are not named
EVERY_UNIT = ""
#: seconds over which rates are taken where a policy does not say, and at most
WINDOW, LONGEST = 0.5, 5.0
#: seconds after an aligned window's end at which it is looked at: reports of all units should be there
SLACK = 0.12
#: seconds of the first moments of a run, between two looks at what sub-units report in them, and after the moment of the reports
FIRST, FIRST_EVERY, FIRST_SLACK = 0.45, 0.05, 0.02


def check_policies(plan: Plan, policies: Mapping[str, str]) -> None:
    """Refuse what cannot be. Raises UsageError with one clear line."""
    made = {name: make(spec) for name, spec in policies.items()}
    _check_pipelines(plan, {spec for name, spec in policies.items() if getattr(made[name], "pipelines", False)})
    for name, policy in made.items():
        if name == EVERY_UNIT:
            continue
        unit = plan.units.get(name)
        if unit is None:
            raise UsageError(plan.unknown(name))
        if policy is not None and unit.kind == "spout":
            raise UsageError(f"unit {name!r} is a spout: its parts are dealt out at the start, no policy can scale it")
        if policy is not None and unit.objects == "unit":
            raise UsageError(f"unit {name!r} has one object (grouping single): no policy can scale it")


def _check_pipelines(plan: Plan, specs: set[str]) -> None:
    if len(specs) > 1:
        raise UsageError(
            f"two policies have pipelines=yes: {' and '.join(sorted(specs))}; a window goes through one sequence of changes: "
            "give all units the same one, with the same parameters"
        )
    if specs and not any(isinstance(unit.spout, WindowedSpout) for unit in plan.units.values()):
        raise UsageError(
            f"policy {specs.pop()!r}: no spout collects windows: wrap one, as in MicroBatches(spout), or leave pipelines=no"
        )


def _may_change(unit: UnitPlan, policy: Policy) -> bool:
    """A bolt's unit."""
    fixed = unit.max_parallelism is not None and unit.max_parallelism <= unit.min_parallelism
    if fixed and not getattr(policy, "moves_only", False):
        return False
    return unit.objects != "unit" and not unit.merger and not unit.replica_index  # replicas change together


class Samples(Protocol):
    """The source of views: a Sampler, or a model's."""

    def forget(self, living: set[int]) -> None:
        """Only these sub-units are left."""
        ...

    def unit(self, unit: Any, spouts: tuple[str, ...], now: float, window: float, consume: bool) -> UnitView:
        """A view of the unit; with `consume` probes are told once."""
        ...

    def totals(self, unit: Any, at: float) -> Totals:
        """All that the unit has counted by that moment."""
        ...


def _together(policy: Policy) -> TypeGuard[TopologyPolicy]:
    return hasattr(policy, "period")


@dataclass
class _Schedule:
    """A judge and when it is asked."""

    judge: Judge
    #: seconds between two looks; 0: as probes are sent
    period: float
    #: looks at windows that are the same for all units
    aligned: bool
    due: float = 0.0
    #: of the aligned window: when it began, and what each unit had counted then
    began: float | None = None
    before: dict[str, Totals] = field(default_factory=dict)

    @property
    def window(self) -> float:
        """Seconds over which samples are taken: `span` of the policy, which may change, or its `window`."""
        if self.aligned:
            return min(self.period, LONGEST)
        policy = self.judge.policy
        window: float = getattr(policy, "span", getattr(policy, "window", WINDOW))
        return window


class Scaling:
    """Takes what is measured; at each tick asks the policies whose time has come."""

    def __init__(
        self,
        plan: Plan,
        policies: Mapping[str, str | Policy | None],
        probe_every: float,
        notice: Callable[[str], None],
        ask: Ask | None = None,
        objectives: Iterable[str] = (),
        samples: Samples | None = None,
        slack: float = SLACK,
        latencies: Callable[[Mapping[str, Any], str], Histogram] = latencies,
    ) -> None:
        """`policies`: specs by unit, `EVERY_UNIT` for the rest; units of the same spec are judged together where a policy does that.

        `ask` calls a policy with a limit of time, where there is a clock; `samples`: where views come from; `objectives`: as they
        are written, of what `latencies` gives for all units and a name. Raises UsageError.
        """
        check_policies(plan, {name: spec for name, spec in policies.items() if isinstance(spec, str)})
        self._plan = plan
        self._policies = policies
        self._notice, self._ask = notice, ask
        self._probe_every = probe_every
        self._slack = slack
        self.sampler = Sampler()
        self._samples: Samples = samples or self.sampler
        self._latencies = latencies
        self.objectives = ObjectiveTracker(parsed(plan, objectives))
        #: by unit; several may have the same one
        self.judges: dict[str, Judge] = {}
        self._schedules: list[_Schedule] = []
        #: the paper's first table has cells that are halved; all others have equal ones
        self.halved = {name for name, unit in plan.units.items() if self.halves(unit)}
        #: judges of several units, by what makes their policies the same
        self._together: dict[int | str, Judge] = {}
        for name in plan.units:
            self._add_judge(name)
        self._look_at_plan()
        #: reports of the first moments; None: they are over, or no policy looks at them
        self._first: FirstReports | None = None
        if any(hasattr(schedule.judge.policy, "decide_first") for schedule in self._schedules):
            self._first = FirstReports()
        self._first_due = math.inf

    def _given(self, unit: UnitPlan) -> tuple[str | Policy | None, str]:
        """Return what was said about a unit, and how its policy is called."""
        policies = self._policies
        given = policies.get(unit.name, policies.get(unit.original, policies.get(EVERY_UNIT, DEFAULT)))
        return given, given if isinstance(given, str) else type(given).__name__.lower()

    def policy_name(self, unit: UnitPlan) -> str:
        """Return the name of the policy that was said for the unit, spout or bolt, or for all."""
        return self._given(unit)[1].partition(":")[0]

    def halves(self, unit: UnitPlan) -> bool:
        """Return whether the unit begins with the paper's first table."""
        return self.policy_name(unit) == "esault" and unit.kind == "bolt"

    def policy_of(self, unit: UnitPlan) -> Policy | None:
        """Return a new policy for the unit; None where none is to scale it."""
        given, _ = self._given(unit)
        if given is None or unit.kind != "bolt":
            return None
        policy = make(given) if isinstance(given, str) else given
        return policy if policy is not None and _may_change(unit, policy) else None

    def add(self, plan: Plan, name: str) -> None:
        """Judge one more unit from now on."""
        self._plan = plan
        if name not in self.judges:
            self._add_judge(name)
        self._look_at_plan()

    def _look_at_plan(self) -> None:
        self._spouts = {name: self._ancestors(name) for name in self._plan.units}
        self._senders = {name: self._plan.senders(name) for name in self._plan.units}

    def _add_judge(self, name: str) -> None:
        policy = self.policy_of(self._plan.units[name])
        if policy is None:
            return
        given, spec = self._given(self._plan.units[name])
        if not _together(policy):
            self._add_schedule(Judge((name,), policy, spec, self._notice, self._ask), 0.0)
            return
        same = given if isinstance(given, str) else id(given)
        judge = self._together.get(same)
        if judge is not None:
            judge.names = tuple(each for each in self._plan.units if each in (*judge.names, name))
            self.judges[name] = judge
            return
        period = policy.period
        if not 0.0 < period < float("inf"):
            raise UsageError(f"policy {spec!r}: its period is {period!r}; it must be a number of seconds above 0")
        judge = self._together[same] = Judge((name,), policy, spec, self._notice, self._ask)
        self._add_schedule(judge, period)

    def _add_schedule(self, judge: Judge, period: float) -> None:
        self._schedules.append(_Schedule(judge, period, aligned=period > 0))
        self.judges.update(dict.fromkeys(judge.names, judge))

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
        """Seconds between two probes to a unit's sub-units."""
        probe_period: float | None = getattr(self.judges[name].policy, "probe_period", None)
        return probe_period or self._probe_every

    @property
    def looks_early(self) -> bool:
        """Return whether a policy looks at the first moments of a run."""
        return self._first is not None

    def status(self, status: Status) -> None:
        """Take a report."""
        self.sampler.status(status)
        if self._first is not None:
            self._first.add(status)

    @property
    def shortest_period(self) -> float | None:
        """Of all units; None when no unit is judged."""
        return min(map(self.period, self.judges), default=None)

    @property
    def next_look(self) -> float:
        """Return when a window is looked at next, seconds since the epoch; infinite where no policy has windows."""
        return min((self._first_due, *(schedule.due for schedule in self._schedules if schedule.aligned)))

    def targets(self, units: Mapping[str, MeasuredUnit]) -> dict[int, tuple[str, float]]:
        """Return the sub-units to probe: incarnation -> (data endpoint, seconds between two probes)."""
        return {
            record.incarnation: (record.built.endpoint, self.period(name))
            for name in self.judges
            for unit in units[name].all_replicas
            for record in unit.subs.values()
            if record.started_at is not None and record.built is not None and not record.leaving and not record.stopped
        }

    def probed(self, readings: Iterable[ProbeReading]) -> None:
        """Take what has happened to probes."""
        self.sampler.probed(readings)

    def decide(
        self,
        units: Mapping[str, Any],
        now: float,
        since_start: float,
        hosts: tuple[HostUsage, ...],
        free_slots: Callable[[], int],
        budget: int | None = None,
        obtainable: int = 0,
    ) -> None:
        """Ask every policy whose time has come. `budget`: slots that the run may hold, which free slots are within already;
        `obtainable`: those of the free ones that other runs would have to give first."""
        units = {name: unit for name, unit in units.items() if name in self._spouts}  # but those that are on their way
        self.look_at_objectives(units, now)
        if self._first is not None:
            self._look_first(self._first, units, now, since_start, hosts, free_slots, budget, obtainable)
        due = [schedule for schedule in self._schedules if now >= schedule.due]
        if not due:
            return
        self._samples.forget({i for unit in units.values() for i in unit.subs})
        seen: dict[tuple[str, float], UnitView] = {}
        for schedule in due:
            windows = self._aligned(schedule, units, now, since_start) if schedule.aligned else {}
            if windows is None:
                continue
            names = schedule.judge.names
            if not schedule.aligned:
                period = self.period(names[0])
                schedule.due = max(schedule.due + period, now + period / 2) if schedule.due else now + period
            views = {}
            for name, unit in units.items():
                consume = name in names
                if consume or (name, schedule.window) not in seen:
                    made = self._samples.unit(unit, self._spouts[name], now, schedule.window, consume)
                    seen[name, schedule.window] = made
                views[name] = seen[name, schedule.window]
            if windows:
                views = {name: replace(view, window=windows[name]) for name, view in views.items()}
            refusals, objectives = schedule.judge.refusals, self.objectives.statuses
            seen_by_all = (
                now,
                since_start,
                views,
                hosts,
                free_slots(),
                names,
                self._senders,
                refusals,
                objectives,
                budget,
            )
            if schedule.aligned:
                schedule.judge.decide(RunView(*seen_by_all, obtainable=obtainable), units, now)
            else:
                view = View(*seen_by_all, unit=views[names[0]].first_replica, obtainable=obtainable)
                schedule.judge.decide(view, units, now)

    def _look_first(
        self,
        reports: FirstReports,
        units: Mapping[str, Any],
        now: float,
        since_start: float,
        hosts: tuple[HostUsage, ...],
        free_slots: Callable[[], int],
        budget: int | None,
        obtainable: int,
    ) -> None:
        """Ask who looks at the first moments of a run, once for each time that sub-units report."""
        if since_start > FIRST:
            self._first, self._first_due = None, math.inf
            return
        if now < self._first_due < math.inf:
            return
        looked = math.floor((now - FIRST_SLACK) / FIRST_EVERY + 1e-3)
        self._first_due = (looked + 1) * FIRST_EVERY + FIRST_SLACK
        kinds = {name: unit.plan.kind == "spout" for name, unit in units.items()}
        windows = {name: reports.window(units[name].subs, spout) for name, spout in kinds.items()}
        found = {name: window for name, window in windows.items() if window is not None}
        if not found:
            return
        for schedule in self._schedules:
            decide = getattr(schedule.judge.policy, "decide_first", None)
            if decide is None:
                continue
            views = {
                name: self._samples.unit(unit, self._spouts[name], now, LENGTH, False) for name, unit in units.items()
            }
            seen = (now, since_start, views, hosts, free_slots(), schedule.judge.names, self._senders)
            view = RunView(*seen, (), self.objectives.statuses, budget, obtainable=obtainable)
            schedule.judge.decide(view, units, now, partial(decide, firsts=found))

    def look_at_objectives(self, units: Mapping[str, Any], now: float, last: bool = False) -> None:
        """Count what was slow, once a second; with `last` up to now."""
        if self.objectives:
            self.objectives.observe(now, lambda name: self._latencies(units, name), last)

    def _aligned(
        self, schedule: _Schedule, units: Mapping[str, Any], now: float, since_start: float
    ) -> dict[str, Any] | None:
        """Return the counts of each unit in the window that has ended; None when none has. Windows end at round times, as spouts report."""
        end = math.floor((now - self._slack) / schedule.period + 1e-6) * schedule.period
        schedule.due = end + schedule.period + self._slack
        if end < now - since_start - 1e-6 or (schedule.began is not None and end <= schedule.began + 1e-6):
            return None
        totals = {name: self._samples.totals(unit, end) for name, unit in units.items()}
        began, before = schedule.began, schedule.before
        schedule.began, schedule.before = end, totals
        if began is None or totals.keys() != before.keys():
            return None
        return {name: total.since(before[name], began, end) for name, total in totals.items()}

    def learnt(self) -> dict[str, Any]:
        """Return what policies have learnt that the next run may begin with: name of the policy -> plain values."""
        found: dict[str, Any] = {}
        for schedule in self._schedules:
            policy = schedule.judge.policy
            if hasattr(policy, "learnt"):
                found.setdefault(schedule.judge.policy_name, policy.learnt())
        return found

    def recall(self, learnt: Mapping[str, Any]) -> None:
        """Have policies begin with what `learnt` gave at the end of an earlier run. Raises KeyError, TypeError, ValueError for another thing."""
        for schedule in self._schedules:
            known = learnt.get(schedule.judge.policy_name)
            if known is not None and hasattr(schedule.judge.policy, "recall"):
                schedule.judge.policy.recall(known)

    def changed(self, name: str, record: ChangeRecord) -> None:
        """A change has ended."""
        judge = self.judges.get(name)
        if judge is not None:
            judge.changed(name, record)

    @property
    def awaited(self) -> int:
        """Return the slots that policies would take if other runs had given them."""
        return sum(schedule.judge.awaited for schedule in self._schedules)

    @property
    def standing(self) -> dict[str, str]:
        """Return the reasons for which nothing is done now, by unit."""
        return {name: reason for schedule in self._schedules for name, reason in schedule.judge.standing.items()}

    @property
    def log(self) -> list[DecisionRecord]:
        """All decisions, in order of time."""
        return sorted((r for schedule in self._schedules for r in schedule.judge.log), key=lambda r: r.at)
