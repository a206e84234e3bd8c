"""The engine's policies `migration` and `random`, and none, for the live experiment of Sousa's dissertation.

Before the load begins all three bring the copies to the dissertation's first placement, by moves. Then the first two
see what the modelled hosts would report: an event takes the host's core for a known time, all copies take the same
memory, sources and gates are on machines of their own. Latencies, rates and places are what the engine measured.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from bench.policies.migration.model import MEMORY, PLACES
from esault import policies
from esault.elasticity.action import Action, Migrate
from esault.elasticity.policies.migration import Migration
from esault.elasticity.policies.migration_rounds import MigrationRounds
from esault.elasticity.policies.random_choice import RandomChoice
from esault.elasticity.view import RunView, Sample
from esault.messages.probe import HostUsage

__all__ = ["LiveMigration", "LiveRandom", "Placed", "first_host", "modelled", "register"]

#: bytes of a modelled host
TOTAL = 2 << 30
#: seconds from the last move of the first placement to the start of the load
AHEAD = 1.0


def first_host(unit: str, copy: int) -> str:
    """Of worker N and its copy, in table 4.4."""
    return f"vm{PLACES[int(unit.rpartition('-')[2]), copy]}"


def modelled(view: RunView, service: float) -> RunView:
    """The view as it would be on such hosts; `service`: seconds of a host's one core for each event."""

    def sample(each: Sample) -> Sample:
        return replace(each, cpu=each.processed * service, memory=round(MEMORY * TOTAL), read=0.0, written=0.0)

    units = {
        name: replace(unit, samples=tuple(map(sample, unit.samples)))
        for name, unit in view.units.items()
        if name in view.managed
    }
    hosts = tuple(HostUsage(host.name, 1, memory_total=TOTAL) for host in view.hosts)
    return replace(view, units=units, hosts=hosts)


@dataclass
class Placed:
    """Brings the copies to where they begin, says when they are there, and moves nothing any more."""

    moves_only: ClassVar[bool] = True

    period: float = 1.0
    #: written when they are
    go: str = ""
    #: seconds of the host's core for each event
    service: float = 0.0

    def __post_init__(self) -> None:
        self.there = False

    def decide(self, view: RunView) -> Sequence[Action]:
        """Moves at the beginning."""
        return () if self.there else self.place(view)

    def place(self, view: RunView) -> Sequence[Action]:
        """To the first placement; of each unit one copy at a time."""
        if any(view.units[name].changing for name in view.managed):
            return ()
        moves: dict[str, Migrate] = {}
        for name in view.managed:
            for sample in view.units[name].samples:
                host = first_host(name, sample.replica)
                if sample.host != host:
                    moves[name] = Migrate("the first placement", sample.sub_unit, host, unit=name)
        if not moves and all(len(view.units[name].samples) == 2 for name in view.managed):
            self.there = True
            part = f"{self.go}.part"
            Path(part).write_text(repr(time.monotonic() + AHEAD))
            os.replace(part, self.go)
        return list(moves.values())


@dataclass
class _AfterPlacement(MigrationRounds):
    """The first placement, then the policy beside which this is a base."""

    go: str = ""
    service: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._first = Placed(self.period, self.go, self.service)

    def decide(self, view: RunView) -> Sequence[Action]:
        """Of the modelled hosts."""
        return super().decide(modelled(view, self.service)) if self._first.there else self._first.decide(view)


@dataclass
class LiveMigration(_AfterPlacement, Migration):
    """`migration` after the first placement."""


@dataclass
class LiveRandom(_AfterPlacement, RandomChoice):
    """`random` after the first placement."""


def register() -> None:
    """A run's processes know them by name."""
    policies.register("live_none", Placed)
    policies.register("live_migration", LiveMigration)
    policies.register("live_random", LiveRandom)
