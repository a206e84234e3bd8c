"""Parcels on their way: dataclasses in dataclasses, frozen ones, ones with slots, and an Enum that says where each stands."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import Enum, IntFlag, auto

from esault import Bolt, Topology, by_key
from esault.sinks import JsonLines
from esault.sources import Items, Paced


class Stage(Enum):
    ORDERED = "ordered"
    PACKED = "packed"
    SENT = "sent"


class Mark(IntFlag):
    FRAGILE = auto()
    HEAVY = auto()
    COLD = auto()


@dataclass(frozen=True)
class Place:
    city: str
    street: str = "Main"


@dataclass(slots=True)
class Step:
    stage: Stage
    at: Place
    weight: float


@dataclass
class Parcel:
    number: int
    marks: Mark
    steps: list[Step] = field(default_factory=list)
    stages: dict[Stage, int] = field(default_factory=dict)


def scans(size: int) -> Iterator[tuple[int, Step]]:
    rng = random.Random(3)
    for _ in range(size):
        yield (
            rng.randrange(40),
            Step(rng.choice(list(Stage)), Place(rng.choice(["Turin", "Bern"])), rng.randrange(1, 9) / 4),
        )


class Follow(Bolt[int, Step, int, Parcel]):
    def __init__(self) -> None:
        self.parcel: Parcel | None = None

    def process(self, key: int, value: Step) -> None:
        if self.parcel is None:
            self.parcel = Parcel(key, Mark(0))
        self.parcel.steps.append(value)
        if self.parcel.steps[-1].weight > 1.5:
            self.parcel.marks |= Mark.HEAVY
        if value.stage is Stage.PACKED:
            self.parcel.marks ^= Mark.COLD
        self.parcel.stages[value.stage] = self.parcel.stages.get(value.stage, 0) + 1
        self.emit(key, replace(self.parcel, steps=self.parcel.steps[-2:], stages=dict(self.parcel.stages)))


def topology(size: int = 2000, rate: float = 1000.0, out: str = "out") -> Topology:
    t = Topology("parcels")
    steps = t.spout("scans", Paced(Items(lambda: scans(size)), rate))
    steps.bolt("follow", Follow, by_key(), parallelism=2).sink("parcels", JsonLines(f"{out}/parcels.jsonl"))
    return t


def expected(size: int):
    steps: dict[int, list[Step]] = {}
    rows = []
    for number, step in scans(size):
        steps.setdefault(number, []).append(step)
        all_steps = steps[number]
        marks = Mark.HEAVY if any(s.weight > 1.5 for s in all_steps) else Mark(0)
        if sum(s.stage is Stage.PACKED for s in all_steps) % 2:
            marks |= Mark.COLD
        stages: dict[Stage, int] = {}
        for s in all_steps:
            stages[s.stage] = stages.get(s.stage, 0) + 1
        rows.append((number, Parcel(number, marks, all_steps[-2:], stages)))
    return {"parcels": rows}
