"""The loads that are measured, seeded and made once, into files that every engine reads: sentences and records."""

from __future__ import annotations

import functools
import itertools
import json
import random
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

__all__ = ["LENGTH", "SEED", "Load", "final", "make", "read", "records", "sentences"]

SEED = 1
WORDS, EXPONENT, LENGTH, KEYS = 10_000, 1.1, 10, 1_000
#: as many as differ; they are offered again and again, so that the load takes little memory beside the engine's
DISTINCT = {"sentences": 20_000, "records": 100_000}


def sentences(n: int, seed: int = SEED) -> list[str]:
    """`n` sentences of ten words, Zipf 1.1 over 10 000 words."""
    words = [f"w{rank}" for rank in range(WORDS)]
    weights = list(itertools.accumulate((rank + 1) ** -EXPONENT for rank in range(WORDS)))
    picked = random.Random(seed).choices(words, cum_weights=weights, k=n * LENGTH)
    return [" ".join(picked[i : i + LENGTH]) for i in range(0, len(picked), LENGTH)]


def records(n: int, seed: int = SEED) -> list[tuple[str, int]]:
    """`n` (key, int) records over 1 000 keys."""
    order = random.Random(seed)
    return [(f"k{order.randrange(KEYS)}", order.randrange(1000)) for _ in range(n)]


@dataclass(frozen=True)
class Load:
    """A file of sentences or records, one a line, to be read `passes` times; sizes are of all passes together."""

    kind: str
    path: Path
    passes: int
    #: what a source offers
    count: int
    #: what is counted: words of sentences, records
    tuples: int
    #: updates that a correct run puts out
    results: int

    def again(self, times: float) -> Load:
        """The same file to be read `times` as often, once at least."""
        passes = max(1, round(self.passes * times))
        sizes = {name: getattr(self, name) // self.passes * passes for name in ("count", "tuples", "results")}
        return replace(self, passes=passes, **sizes)

    def final(self) -> dict[str, int]:
        """Return what is counted in the end, by key, whatever updates come before."""
        return final(read(str(self.path)), self.passes)

    def facts(self) -> dict[str, Any]:
        """As it stands in a result."""
        sizes = {"count": self.count, "distinct": self.count // self.passes, "tuples": self.tuples, "seed": SEED}
        if self.kind == "sentences":
            return {"kind": self.kind, **sizes, "words_each": LENGTH, "zipf": EXPONENT, "vocabulary": WORDS}
        return {"kind": self.kind, **sizes, "results": self.results, "keys": KEYS}


def make(kind: str, n: int, folder: str | Path) -> Load:
    """Write about `n` "sentences" or "records" into a file in `folder`: whole passes over those that differ."""
    distinct = max(1, min(n, DISTINCT[kind]))
    passes = max(1, round(n / distinct))
    path = Path(folder) / f"{kind}.{distinct}"
    if kind == "sentences":
        rows: list[Any] = sentences(distinct)
        tuples = results = distinct * passes * LENGTH
    else:
        rows = records(distinct)
        tuples = distinct * passes
        results = sum((value + 1) % 2 == 0 for _, value in rows) * passes
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return Load(kind, path, passes, distinct * passes, tuples, results)


@functools.lru_cache(maxsize=1)
def read(path: str) -> list[Any]:
    """The rows of a load's file, as (key, value); a sentence has no key."""
    with open(path) as lines:
        rows = [json.loads(line) for line in lines]
    return [tuple(row) if isinstance(row, list) else (None, row) for row in rows]


def final(rows: list[Any], passes: int) -> dict[str, int]:
    """The counts of workload A, or the sums of B, over rows as `read` gives them, offered `passes` times."""
    totals: Counter[str] = Counter()
    for key, value in rows:
        if key is None:
            totals.update(value.split())
        elif (value + 1) % 2 == 0:
            totals[key] += value + 1
    return {key: total * passes for key, total in totals.items()}
