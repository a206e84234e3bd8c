"""attrs classes, frozen and not, with converters, validators and slots, in values and in state."""

from __future__ import annotations

import random

import attrs

from esault import Bolt, Topology, by_key
from esault.sinks import JsonLines
from esault.sources import Items, Paced


@attrs.frozen
class Review:
    product: str
    stars: int = attrs.field(converter=int, validator=attrs.validators.in_(range(1, 6)))
    words: tuple[str, ...] = ()


@attrs.define
class Score:
    stars: list[int] = attrs.field(factory=lambda: [0] * 6)
    best: Review | None = None
    words: set[str] = attrs.field(factory=set)
    mean: float = attrs.field(init=False, default=0.0)

    def add(self, review: Review) -> None:
        self.stars[review.stars] += 1
        self.words |= set(review.words)
        if self.best is None or review.stars > self.best.stars:
            self.best = review
        self.mean = sum(i * n for i, n in enumerate(self.stars)) / sum(self.stars)


@attrs.define(slots=False)
class Shown:
    review: Review
    score: Score


class Rate(Bolt[str, Review, str, Shown]):
    def __init__(self) -> None:
        self.score = Score()

    def process(self, key: str, value: Review) -> None:
        self.score.add(value)
        kept = attrs.evolve(self.score, stars=list(self.score.stars), words=set(self.score.words))
        kept.mean = self.score.mean
        self.emit(key, Shown(attrs.evolve(value, words=()), kept))


def reviews(size: int) -> list[tuple[str, Review]]:
    rng = random.Random(15)
    made = []
    for _ in range(size):
        product = f"p{rng.randrange(20)}"
        made.append((product, Review(product, str(rng.randrange(1, 6)), tuple(rng.sample(["good", "bad", "odd"], 2)))))
    return made


def topology(size: int = 2000, rate: float = 1000.0, out: str = "out") -> Topology:
    t = Topology(
        "reviews",
    )
    rows = t.spout("reviews", Paced(Items(reviews(size)), rate))
    rows.bolt("rate", Rate, by_key()).sink("scores", JsonLines(f"{out}/scores.jsonl"))
    return t


def expected(size: int):
    seen: dict[str, list[Review]] = {}
    rows = []
    for product, review in reviews(size):
        mine = seen.setdefault(product, [])
        mine.append(review)
        best = max(mine, key=lambda r: r.stars)
        score = Score([sum(r.stars == i for r in mine) for i in range(6)], best, {w for r in mine for w in r.words})
        score.mean = sum(r.stars for r in mine) / len(mine)
        rows.append((product, Shown(Review(product, review.stars), score)))
    return {"scores": rows}
