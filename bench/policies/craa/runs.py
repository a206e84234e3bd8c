"""CRAA's chain judged by the engine's own policies: in the window-level model, and in the simulator."""

from __future__ import annotations

import statistics
from collections.abc import Mapping

from bench.policies.craa.model import CHAIN, OPERATORS, SECONDS, Load, Measured, Operator, Outcome
from esault.elasticity.action import Rescale, Throttle
from esault.elasticity.policies.craa import Craa
from esault.elasticity.policy import TopologyPolicy, make
from esault.elasticity.view import RunView, Sample, UnitView, UnitWindow
from esault.sim import Model, Source, Timing, simulate
from esault.sim import Operator as SimOperator
from esault.topology.plan import UnitPlan

__all__ = ["SETTINGS", "Steered", "simulated"]

SOURCE = "source"
#: seconds in which flow is uniform; loads change every five
STEP = 0.1
#: (seconds that emitted tuples take to the next operator, seconds until a new sub-unit serves, tuples come at random)
SETTINGS: dict[str, tuple[float, float, bool]] = {
    #: what the formulas assume: handed on a window later, changes at once
    "next window": (SECONDS, 0.0, False),
    #: the same, tuples one by one at random instants
    "next window, random arrivals": (SECONDS, 0.0, True),
    #: what the engine does: delivery at once, and sub-units that take as long to start as eSault's
    "at once": (0.0, Timing().start, False),
}


class Steered:
    """A policy of the engine as a judge of the window-level model, through the views that it would get."""

    def __init__(self, policy: TopologyPolicy, operators: Mapping[str, Operator] = OPERATORS) -> None:
        self._policy = policy
        self._operators = operators
        self._windows = 0
        self.avoided = dict.fromkeys(CHAIN, 0)

    def __call__(self, measured: Mapping[str, Measured]) -> tuple[dict[str, int], dict[str, float]]:
        """One decision."""
        actions = self._policy.decide(self.view(measured))
        if isinstance(self._policy, Craa):
            self.avoided.update(self._policy.avoided)
        changes = {a.unit: a.n - measured[a.unit].width for a in actions if isinstance(a, Rescale)}
        return changes, {a.unit: a.rate for a in actions if isinstance(a, Throttle)}

    def view(self, measured: Mapping[str, Measured]) -> RunView:
        """Return what the policy reads."""
        start, self._windows = self._windows * SECONDS, self._windows + 1
        came = measured[CHAIN[0]].arrivals * SECONDS
        end = start + SECONDS
        source = UnitWindow(start, end, came, came, came)
        units = {SOURCE: UnitView(SOURCE, UnitPlan(SOURCE, "spout"), window=source)}
        for o, m in measured.items():
            operator = self._operators[o]
            window = UnitWindow(
                start,
                end,
                arrivals=m.arrivals * SECONDS,
                processed=m.processed,
                emitted=m.processed * operator.ratio,
                dropped=m.lost,
                busy=m.processed / operator.one,
                waiting_before=m.before,
                waiting=m.waiting,
                width=m.width,
            )
            samples = tuple(Sample(i) for i in range(m.width))
            units[o] = UnitView(o, UnitPlan(o, "bolt"), samples, spouts=(SOURCE,), window=window, buffer=operator.size)
        senders = {o: (CHAIN[i - 1],) if i else (SOURCE,) for i, o in enumerate(CHAIN)}
        return RunView(end, end, units, (), 10**6, CHAIN, senders)


def simulated(
    load: Load,
    spec: str,
    windows: int,
    setting: str = "next window",
    operators: Mapping[str, Operator] = OPERATORS,
    seed: int = 1,
) -> Outcome:
    """The chain in the simulator under a policy, in one of SETTINGS."""
    delay, start, at_random = SETTINGS[setting]
    source = Source(SOURCE, lambda t: load(int(t // SECONDS)), burst=1.0 if at_random else 0.0)
    parts: list[Source | SimOperator] = [source]
    for o, operator in operators.items():
        sender = parts[-1].name
        part = SimOperator(o, (sender,), 1.0 / operator.one, buffer=operator.size, delay=delay)
        parts.append(part)
    timing = Timing(start=start, move=Timing().move if start else 0.0, net=0.0)
    policy = make(spec)
    run = simulate(Model(parts, timing=timing, slots=10**6), policy, seconds=windows * SECONDS, seed=seed, step=STEP)
    if any(d.outcome.startswith("failed") for d in run.decisions):
        raise RuntimeError(f"policy {spec!r} failed: {run.notices}")
    made = [d for d in run.decisions if d.outcome in ("begun", "done")]
    avoided = policy.avoided if isinstance(policy, Craa) else {}
    return Outcome(
        [round(run.operators[o].dropped) for o in CHAIN],
        [round(run.operators[o].utilisation, 3) for o in CHAIN],
        [sum(d.unit == o and "->" in d.what for d in made) for o in CHAIN],
        [avoided.get(o, 0) for o in CHAIN],
        sum(d.what.startswith("throttle") for d in made),
        round(run.operators[CHAIN[-1]].processed / (windows * SECONDS)),
        {o: _by_window(run.operators[o].trace, windows) for o in CHAIN},
    )


def _by_window(trace: list[tuple[float, int]], windows: int) -> list[int]:
    """Sub-units in the middle of each window."""
    return [next(n for t, n in reversed(trace) if t <= (k + 0.5) * SECONDS) for k in range(windows)]


def mean(outcomes: list[Outcome]) -> Outcome:
    """Of runs with several seeds."""
    by = lambda field: [[getattr(o, field)[i] for o in outcomes] for i in range(len(CHAIN))]
    return Outcome(
        [round(statistics.fmean(v)) for v in by("lost")],
        [round(statistics.fmean(v), 3) for v in by("used")],
        [round(statistics.fmean(v)) for v in by("changes")],
        [round(statistics.fmean(v)) for v in by("avoided")],
        round(statistics.fmean(o.slowed for o in outcomes)),
        round(statistics.fmean(o.throughput for o in outcomes)),
    )
