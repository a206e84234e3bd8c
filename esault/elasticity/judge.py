"""The judge of one unit, or of several together: its policy behind the guard, and the log of what was decided."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Protocol

from esault.elasticity.action import Action, Advise, NoChange
from esault.elasticity.edit import edited
from esault.elasticity.guard import Guard, Verdict
from esault.elasticity.policy import Policy
from esault.elasticity.view import RunView, View
from esault.errors import PolicyTimeout, UsageError
from esault.messages.change_record import ChangeRecord
from esault.routing.table import OutputTable

__all__ = ["NO_CHANGE", "Ask", "Changeable", "DecisionRecord", "Judge"]


class Changeable(Protocol):
    """A unit that carries out what its judge lets pass."""

    @property
    def width(self) -> int:
        """Return the number of its sub-units."""
        ...

    @property
    def table(self) -> OutputTable | None:
        """Return the owners of the parts of the ring; None before the table is built, and for spouts."""
        ...

    def adopt(self, after: OutputTable, news: int, now: float, kind: str, reason: str, policy: str) -> int:
        """Change to this table, in which -1, -2 ... stand for new sub-units; the id of the change. Raises UsageError."""
        ...

    def move(self, owner: int, now: float, reason: str = "", policy: str = "by hand", host: str | None = None) -> int:
        """A new sub-unit, on that host where one is said, takes the owner's place; the change's id. Raises UsageError."""
        ...

    def throttle(self, rate: float, seconds: float, now: float) -> None:
        """Process at most `rate` tuples a second, all sub-units together, for so long. Raises UsageError."""
        ...


#: decisions that are kept for a unit; the oldest go first
MOST = 10_000
#: seconds for which a policy that took too long is not asked
REST = 10.0
#: what is written where a policy says why it does nothing
NO_CHANGE = "no change"
#: seconds for which a reason against a change must stand before it is written down: windows swing
STANDS = 2.0

#: calls a policy, and raises PolicyTimeout if it does not return in time; who has no clock just calls it
Ask = Callable[[Callable[[], Sequence[Action]]], Sequence[Action]]


@dataclass
class DecisionRecord:
    """Something that a policy wanted, or said."""

    #: seconds since the epoch
    at: float
    unit: str
    policy: str
    #: such as "rescale: 1 -> 4", "advice", "no change"
    what: str
    reason: str
    #: "begun", "done", "dropped: ...", "refused: ...", "said", "failed: ..."
    outcome: str
    #: how often in a row
    times: int = 1


@dataclass
class _Standing:
    """The reason for which nothing is done to a unit, as of the last look."""

    cause: str
    since: float
    #: that was written down last
    written: str = ""
    reason: str = ""


class Judge:
    """Asks the policy, and has done what it wants. A policy that fails is told of and skipped; the topology runs on."""

    def __init__(
        self, names: Sequence[str], policy: Policy, spec: str, notice: Callable[[str], None], ask: Ask | None = None
    ) -> None:
        """`names`: the units it judges, senders first; a unit's own policy has one."""
        self.names = tuple(names)
        self.policy = policy
        self.policy_name = spec.partition(":")[0]
        self._notice = notice
        self._ask = ask or (lambda call: call())
        self._guard = Guard()
        self._refusals: tuple[str, ...] = ()
        #: unit -> id of the change that was begun there last, and its decision
        self._begun: dict[str, tuple[int, DecisionRecord]] = {}
        self._resting_until = 0.0
        self._standing: dict[str, _Standing] = {}
        #: slots that the policy would take if other runs had given them, as of the last look
        self.awaited = 0
        self.log: list[DecisionRecord] = []

    def decide(
        self,
        view: RunView,
        units: Mapping[str, Changeable],
        now: float,
        decide: Callable[[Any], Sequence[Action]] | None = None,
    ) -> None:
        """One look; `decide`: of the policy, in place of its usual one."""
        self.awaited = 0
        if now < self._resting_until:
            return
        asked: Callable[[Any], Sequence[Action]] = decide or self.policy.decide
        try:
            returned = list(self._ask(lambda: asked(view)))
            actions = [action for action in returned if not isinstance(action, NoChange)]
            # What it returns is looked at in here, too: nonsense in it is the policy's failure and no other's.
            by_unit = self._by_unit(actions)
            verdicts = self._verdicts(view, by_unit)
        except PolicyTimeout as error:
            self._resting_until = now + REST
            self._write(now, self._label, "policy too slow", f"{error}; it is asked again in {REST:.0f} s", "failed")
            return
        except Exception as error:
            self._write(now, self._label, "policy failed", f"{type(error).__name__}: {error}", "failed")
            return
        for standing in self._standing.values():
            standing.reason = ""
        for action in returned:
            if isinstance(action, NoChange):
                self._stand(action, now)
        if not actions:
            return
        self.awaited = sum(verdict.awaited for verdict in verdicts.values())
        self._refusals = ()
        for name, verdict in verdicts.items():
            self._act(name, by_unit[name], verdict, view, units, now)

    def _stand(self, action: NoChange, now: float) -> None:
        """Write a reason down once it has stood for a while, unless it is the one that was written last."""
        name = action.unit or self.names[0]
        standing = self._standing.setdefault(name, _Standing(action.cause, now))
        if standing.cause != action.cause:
            standing.cause, standing.since = action.cause, now
        standing.reason = action.reason
        if standing.written != standing.cause and now - standing.since >= STANDS:
            standing.written = standing.cause
            self._write(now, name, NO_CHANGE, action.reason, "said")

    @property
    def standing(self) -> dict[str, str]:
        """Return the reasons for which nothing is done now, by unit; without units of which nothing was said."""
        return {name: standing.reason for name, standing in self._standing.items() if standing.reason}

    @property
    def _label(self) -> str:
        return ", ".join(self.names)

    def _by_unit(self, actions: Sequence[Action]) -> dict[str, list[Action]]:
        """Return the actions by unit; what is no action goes to the first."""
        by_unit: dict[str, list[Action]] = {}
        for action in actions:
            name = action.unit if isinstance(action, Action) and action.unit else self.names[0]
            by_unit.setdefault(name, []).append(action)
        return by_unit

    def _verdicts(self, view: RunView, by_unit: Mapping[str, Sequence[Action]]) -> dict[str, Verdict]:
        verdicts: dict[str, Verdict] = {}
        free, obtainable = view.free_slots, view.obtainable
        for name, actions in by_unit.items():
            unit = view.units.get(name)
            if unit is None or (name not in self.names and unit.plan.kind != "spout"):
                verdicts[name] = Verdict((), (f"there is no unit {name!r} that this policy may change",))
                continue
            verdict = verdicts[name] = self._guard.check(_narrowed(view, name, free, obtainable), actions)
            free -= verdict.growth + verdict.awaited
            obtainable -= verdict.awaited
        return verdicts

    def _act(
        self,
        name: str,
        actions: Sequence[Action],
        verdict: Verdict,
        view: RunView,
        units: Mapping[str, Changeable],
        now: float,
    ) -> None:
        for action in actions:
            if isinstance(action, Advise):
                self._notice(str(action.reason))
                self._write(now, name, "advice", str(action.reason), "said")
        self._refusals = (*self._refusals, *verdict.refusals)
        reason = "; ".join(str(a.reason) for a in actions if isinstance(a, Action) and not isinstance(a, Advise))
        if verdict.awaited:
            self._stand(
                NoChange(f"{verdict.awaited} slots are asked of runs of lower priority", "preemption", unit=name), now
            )
        if verdict.allowed:
            self._change(name, verdict.allowed, view, units[name], now)
        for throttle in verdict.throttles:
            what = f"throttle to {throttle.rate:,.0f}/s for {throttle.seconds:g} s"
            call: Callable[[], object] = partial(units[name].throttle, throttle.rate, throttle.seconds, now)
            self._try(name, what, throttle.reason, now, call)
        for move in verdict.moves:
            call = partial(units[name].move, move.sub_unit, now, move.reason, self.policy_name, move.host)
            self._try(name, f"migrate {move.sub_unit} to {move.host}", move.reason, now, call)
        for refusal in verdict.refusals:
            self._write(now, name, "action", reason, f"refused: {refusal}")

    @property
    def refusals(self) -> tuple[str, ...]:
        """Of the last time; for the next view."""
        return self._refusals

    def _change(self, name: str, actions: Sequence[Action], view: RunView, unit: Changeable, now: float) -> None:
        reason = "; ".join(a.reason for a in actions)
        assert unit.table is not None
        try:
            edit = edited(unit.table, actions, view.units[name].samples)
            after = len(edit.table.owners())
            what = f"{edit.kind}: {unit.width} -> {after}"
            change = unit.adopt(edit.table, edit.news, now, edit.kind, reason, self.policy_name)
        except UsageError as error:
            self._refusals = (*self._refusals, str(error))
            self._write(now, name, "action", reason, f"refused: {error}")
            return
        self._begun[name] = change, self._write(now, name, what, reason, "begun")

    def _try(self, name: str, what: str, reason: str, now: float, call: Callable[[], object]) -> None:
        try:
            call()
        except UsageError as error:
            self._refusals = (*self._refusals, str(error))
            self._write(now, name, "action", reason, f"refused: {error}")
            return
        self._write(now, name, what, reason, "done")

    def changed(self, name: str, record: ChangeRecord) -> None:
        """A change of one of its units has ended."""
        change, decision = self._begun.get(name, (0, None))
        if decision is not None and record.id == change:
            decision.outcome = f"dropped: {record.dropped}" if record.dropped else "done"
            del self._begun[name]

    def _write(self, now: float, unit: str, what: str, reason: str, outcome: str) -> DecisionRecord:
        if (
            self.log
            and (self.log[-1].unit, self.log[-1].what, self.log[-1].outcome) == (unit, what, outcome)
            and what in ("action", "policy failed", "policy too slow")
        ):
            self.log[-1].times += 1
            return self.log[-1]
        if outcome == "failed" or outcome.startswith("refused"):
            self._notice(f"unit {unit!r}, policy {self.policy_name}: {outcome}; {reason}")
        record = DecisionRecord(now, unit, self.policy_name, what, reason, outcome)
        self.log.append(record)
        del self.log[:-MOST]
        return record


def _narrowed(view: RunView, name: str, free: int, obtainable: int) -> View:
    """The view of one of the units, with so many slots left, of which others would have to give some first."""
    if isinstance(view, View):
        return replace(view, unit=view.units[name], free_slots=free, obtainable=obtainable)
    shared = {f.name: getattr(view, f.name) for f in fields(RunView)}
    return View(**{**shared, "free_slots": free, "obtainable": obtainable}, unit=view.units[name])
