"""The part of a latency objective that tuples may spend waiting at one unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from esault.elasticity.objective import ObjectiveStatus
from esault.elasticity.view import RunView

__all__ = ["Allowance"]

#: share of an objective that is left for waiting at least, where services take most of it
LEAST = 0.05
#: by so much waits are allowed less while too many tuples are slow, and more while hardly any is
TIGHTEN, LOOSEN = 0.7, 1.15
#: of what the objective leaves for waiting: the bounds of what is allowed
TIGHTEST, LOOSEST = 0.05, 4.0
#: burn rate below which waits may be longer
CHEAP = 0.2
#: seconds between two steps: the burn rate of late is to be that of the step before
STEP = 6.0


@dataclass
class _Aim:
    """One objective."""

    #: what is allowed, as a share of what the objective leaves for waiting
    factor: float = 1.0
    stepped: float = 0.0


@dataclass
class Allowance:
    """Divides each objective among the units on the longest way through them, and learns by the burn rate how strict that must be.

    A queue's model is rough: batches, the engine's own work and neighbours on the same cores are not in it. So what is
    allowed follows what is measured, as an integrating controller does: less while more tuples are slow than may be, more
    while hardly any is.
    """

    #: seconds that tuples may wait at a unit that has no objective
    default: float
    _aims: dict[int, _Aim] = field(default_factory=dict)
    _waits: dict[str, float] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self._aims)

    @property
    def looseness(self) -> float:
        """0 where an objective is as strict as it is written, or stricter, up to 1 where waits may be longest."""
        factor = min((aim.factor for aim in self._aims.values()), default=1.0)
        return max(0.0, min(1.0, (factor - 1.0) / (LOOSEST - 1.0)))

    def observe(self, view: RunView, services: Mapping[str, float]) -> None:
        """Take the objectives as they stand; `services`: seconds that a tuple takes at each bolt's unit, where known."""
        if not view.objectives:
            return
        # Where no slot is free, stricter waits of one unit would be another's want.
        quiet = view.free_slots > 0 and not any(
            unit.changing or (unit.changed_at is not None and view.now < unit.changed_at + STEP)
            for unit in view.units.values()
        )
        self._waits = {}
        for number, status in enumerate(view.objectives):
            aim = self._aims.setdefault(number, _Aim(stepped=view.now))
            self._step(aim, status, view.now, quiet)
            self._divide(view, status, aim.factor, services)

    def _step(self, aim: _Aim, status: ObjectiveStatus, now: float, quiet: bool) -> None:
        """Move one step, unless what was slow may come of a change."""
        burning = status.recent_burn_rate
        if burning is None or not quiet or now < aim.stepped + STEP:
            return
        if burning > 1.0:
            aim.factor = max(TIGHTEST, min(aim.factor, 1.0) * TIGHTEN)
        elif burning < CHEAP:
            aim.factor = min(LOOSEST, aim.factor * LOOSEN)
        else:
            return
        aim.stepped = now

    def _divide(self, view: RunView, status: ObjectiveStatus, factor: float, services: Mapping[str, float]) -> None:
        objective = status.objective
        if objective.unit:
            ways = {objective.unit: (1, services.get(objective.unit, 0.0))}
        else:
            ways = _ways(view, services)
        for name, (length, worked) in ways.items():
            left = max(objective.seconds - worked, LEAST * objective.seconds)
            wait = factor * left / length
            self._waits[name] = min(wait, self._waits.get(name, wait))

    def wait(self, name: str) -> float:
        """Seconds that tuples may wait at that unit."""
        return self._waits.get(name, self.default)


def _ways(view: RunView, services: Mapping[str, float]) -> dict[str, tuple[int, float]]:
    """Bolt's unit -> bolts on the longest way through it, and the seconds of service on the slowest."""
    bolts = [name for name, unit in view.units.items() if unit.plan.kind != "spout"]
    down: dict[str, tuple[int, float]] = {}
    up: dict[str, tuple[int, float]] = {}
    for name in bolts:
        before = [down[s] for s in view.senders.get(name, ()) if s in down]
        down[name] = _longest(before, services.get(name, 0.0))
    for name in reversed(bolts):
        after = [up[r] for r in bolts if name in view.senders.get(r, ()) and r in up]
        up[name] = _longest(after, services.get(name, 0.0))
    return {
        name: (down[name][0] + up[name][0] - 1, down[name][1] + up[name][1] - services.get(name, 0.0)) for name in bolts
    }


def _longest(ways: list[tuple[int, float]], service: float) -> tuple[int, float]:
    return 1 + max((n for n, _ in ways), default=0), service + max((seconds for _, seconds in ways), default=0.0)
