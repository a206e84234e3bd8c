"""The judge of one unit: its policy behind the guard, and the log of what was decided."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from esault.control.change import ChangeRecord
from esault.control.elastic_unit import ElasticUnit
from esault.control.elasticity.action import Action, Advise
from esault.control.elasticity.edit import edited
from esault.control.elasticity.guard import Guard
from esault.control.elasticity.policy import Policy
from esault.control.elasticity.view import View
from esault.errors import UsageError

__all__ = ["DecisionRecord", "Judge"]

#: decisions that are kept for a unit; the oldest go first
MOST = 10_000


@dataclass
class DecisionRecord:
    """Something that a policy wanted, or said."""

    #: seconds since the epoch
    at: float
    unit: str
    policy: str
    #: such as "rescale to 4", "advice"
    what: str
    reason: str
    #: "begun", "done", "dropped: ...", "refused: ...", "said", "failed: ..."
    outcome: str
    #: how often in a row
    times: int = 1


class Judge:
    """Asks the policy, and has done what it wants. A policy that fails is told of and skipped; the topology runs on."""

    def __init__(self, name: str, policy: Policy, spec: str, notice: Callable[[str], None]) -> None:
        self.name = name
        self.policy = policy
        self.policy_name = spec.partition(":")[0]
        self._notice = notice
        self._guard = Guard()
        self._refusals: tuple[str, ...] = ()
        self._begun: DecisionRecord | None = None
        self.log: list[DecisionRecord] = []

    def decide(self, view: View, unit: ElasticUnit, now: float) -> None:
        """One look at the unit."""
        try:
            actions = list(self.policy.decide(view))
            # What it returns is looked at in here, too: nonsense in it is the policy's failure and nobody else's.
            verdict = self._guard.check(view, actions) if actions else None
        except Exception as error:
            self._write(now, "policy failed", f"{type(error).__name__}: {error}", "failed")
            return
        if verdict is None:
            return
        for action in actions:
            if isinstance(action, Advise):
                self._notice(action.reason)
                self._write(now, "advice", action.reason, "said")
        self._refusals = verdict.refusals
        reason = "; ".join(a.reason for a in actions if isinstance(a, Action) and not isinstance(a, Advise))
        if verdict.allowed:
            self._carry_out(verdict.allowed, view, unit, now)
        for refusal in verdict.refusals:
            self._write(now, "wish", reason, f"refused: {refusal}")

    @property
    def refusals(self) -> tuple[str, ...]:
        """Of the last time; for the next view."""
        return self._refusals

    def _carry_out(self, actions: Sequence[Action], view: View, unit: ElasticUnit, now: float) -> None:
        reason = "; ".join(a.reason for a in actions)
        assert unit.table is not None
        try:
            edit = edited(unit.table, actions, view.unit.samples)
            after = len(edit.table.owners())
            what = f"{edit.kind}: {unit.width} -> {after}"
            unit.adopt(edit.table, edit.news, now, edit.kind, reason, self.policy_name)
        except UsageError as error:
            self._refusals = (*self._refusals, str(error))
            self._write(now, "wish", reason, f"refused: {error}")
            return
        self._begun = self._write(now, what, reason, "begun")

    def changed(self, record: ChangeRecord) -> None:
        """A change of the unit has ended."""
        if self._begun is not None and record.at == self._begun.at:
            self._begun.outcome = f"dropped: {record.dropped}" if record.dropped else "done"
            self._begun = None

    def _write(self, now: float, what: str, reason: str, outcome: str) -> DecisionRecord:
        if (
            self.log
            and (self.log[-1].what, self.log[-1].outcome) == (what, outcome)
            and what in ("wish", "policy failed")
        ):
            self.log[-1].times += 1
            return self.log[-1]
        if what == "policy failed" or outcome.startswith("refused"):
            self._notice(f"unit {self.name!r}, policy {self.policy_name}: {outcome}; {reason}")
        record = DecisionRecord(now, self.name, self.policy_name, what, reason, outcome)
        self.log.append(record)
        del self.log[:-MOST]
        return record
