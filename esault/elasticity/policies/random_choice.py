"""The policy `random`: sub-units are moved by chance. A baseline for `migration`, of no other use.

Sousa's dissertation (2014), 4.2: each sub-unit is a candidate or not by the toss of a coin, in any order;
destinations, limit and rounds are those of `migration`. How often the coin says yes is not printed: half of the time
here.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from esault.elasticity.policies.migration_rounds import MigrationRounds, Replica, Reports
from esault.elasticity.view import RunView
from esault.errors import UsageError

__all__ = ["RandomChoice"]


@dataclass
class RandomChoice(MigrationRounds):
    """Times in seconds; the same seed makes the same choices of the same views."""

    #: share of the sub-units that are candidates in a round
    probability: float = 0.5
    #: of the choice
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.probability <= 1:
            raise UsageError(f"probability={self.probability:g} must be 0 to 1")
        self._random = random.Random(self.seed)

    def candidates(
        self, view: RunView, reports: Mapping[Replica, Reports], moved_at: Mapping[Replica, float]
    ) -> list[Replica]:
        """Some, in any order."""
        chosen = [replica for replica in reports if self._random.random() < self.probability]
        self._random.shuffle(chosen)
        return chosen

    def because(self, reports: Reports) -> str:
        """There is no reason."""
        return "drawn by chance"
