"""Scenarios 1 to 13 of the migration dissertation, by its plain text and by the engine's policies."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bench.policies.migration.deciders import Ours, Reference
from bench.policies.migration.model import Decider, Figures, Move, run
from esault.elasticity.policies.migration import Migration
from esault.elasticity.policies.random_choice import RandomChoice

__all__ = ["SCENARIOS", "SETTINGS", "Measured", "Scenario", "Setting", "gain", "measure"]


class Scenario(NamedTuple):
    """One row."""

    #: "migration", "random" or "none"
    policy: str
    d: float | None
    #: 0: no limit
    limit: int
    varied: bool


SCENARIOS = {
    **{i + 1: Scenario("migration", d, 1, True) for i, d in enumerate((0.25, 0.5, 0.75))},
    **{i + 4: Scenario("migration", d, 1, False) for i, d in enumerate((0.25, 0.5, 0.75))},
    **{i + 7: Scenario("migration", d, 0, True) for i, d in enumerate((0.25, 0.5, 0.75))},
    10: Scenario("random", None, 1, True),
    11: Scenario("random", None, 1, False),
    12: Scenario("none", None, 1, True),
    13: Scenario("none", None, 1, False),
}


def gain(ours: float, base: float) -> float:
    """By which share it is below."""
    return 1 - ours / base


@dataclass(frozen=True)
class Measured:
    """Runs by scenario, one for each seed, in the same order."""

    runs: Mapping[int, Sequence[Figures]]

    def mean(self, scenario: int, figure: str) -> float:
        """Over the seeds."""
        return statistics.fmean(self.all(scenario, figure))

    def all(self, scenario: int, figure: str) -> list[float]:
        """One for each seed."""
        return [float(getattr(r, figure)) for r in self.runs[scenario]]

    def gains(self, figure: str, base: int, scenarios: Iterable[int]) -> list[float]:
        """Of each scenario's mean below that of `base`."""
        return [gain(self.mean(s, figure), self.mean(base, figure)) for s in scenarios]

    def overlap(self, figure: str, a: int, b: int) -> bool:
        """Return whether the ranges over the seeds do."""
        one, other = self.all(a, figure), self.all(b, figure)
        return min(one) <= max(other) and min(other) <= max(one)


def _decider(who: str, scenario: Scenario, memory: bool, seed: int) -> Decider | None:
    if scenario.policy == "none":
        return None
    if who == "reference":
        return Reference(scenario.d, scenario.limit, memory, seed)
    if scenario.d is None:
        return Ours(RandomChoice(limit=scenario.limit, memory=memory, seed=seed))
    return Ours(Migration(d=scenario.d, limit=scenario.limit, memory=memory))


#: (who decides, memory in the test)
Setting = tuple[str, bool]
SETTINGS: tuple[Setting, ...] = tuple((who, memory) for memory in (True, False) for who in ("reference", "sim"))


def measure(
    seeds: Sequence[int], scenarios: Iterable[int] = SCENARIOS
) -> tuple[dict[Setting, Measured], dict[str, int]]:
    """All runs by setting, and in how many the policies wanted exactly the moves of the reference."""
    runs: dict[Setting, dict[int, list[Figures]]] = {setting: {} for setting in SETTINGS}
    same = {"runs": 0, "same": 0}
    for number in scenarios:
        scenario = SCENARIOS[number]
        for seed in seeds:
            if scenario.policy == "none":
                figures = run(None, seed, scenario.varied)
                for setting in SETTINGS:
                    runs[setting].setdefault(number, []).append(figures)
                continue
            for memory in (True, False):
                moves: dict[str, list[Move]] = {"reference": [], "sim": []}
                for who, trace in moves.items():
                    figures = run(_decider(who, scenario, memory, seed), seed, scenario.varied, trace)
                    runs[who, memory].setdefault(number, []).append(figures)
                same["runs"] += 1
                same["same"] += moves["reference"] == moves["sim"]
    return {setting: Measured(each) for setting, each in runs.items()}, same
