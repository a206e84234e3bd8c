"""The loads that are measured, seeded: sentences (A and C) and records (B)."""

from __future__ import annotations

import bisect
import itertools
import random

__all__ = ["SEED", "records", "sentences"]

SEED = 1
WORDS, EXPONENT, LENGTH = 10_000, 1.1, 10


def sentences(n: int, seed: int = SEED) -> list[str]:
    """`n` sentences of ten words, Zipf 1.1 over 10 000 words."""
    order = random.Random(seed)
    sums = list(itertools.accumulate((rank + 1) ** -EXPONENT for rank in range(WORDS)))
    words = [f"w{bisect.bisect_left(sums, order.random() * sums[-1])}" for _ in range(200_003)]
    picked = itertools.cycle(words)
    return [" ".join(itertools.islice(picked, LENGTH)) for _ in range(n)]


def records(n: int, seed: int = SEED) -> list[tuple[str, int]]:
    """`n` (key, int) records over 1 000 keys."""
    order = random.Random(seed)
    return [(f"k{order.randrange(1000)}", order.randrange(1000)) for _ in range(n)]
