"""The comparison of two files of rows, whatever their order."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import zip_longest
from typing import Any

__all__ = ["Comparison", "compare"]


@dataclass(frozen=True)
class Comparison:
    """The outcome: rows of each, and those that the other has not, as often."""

    first: int
    shadow: int
    #: rows that one has and the other has not; keys that such rows have
    rows: int = 0
    keys: int = 0
    #: by key, as JSON: the first such rows of the first version and of the shadow, as lines
    shown: dict[str, tuple[list[str], list[str]]] = field(default_factory=dict)

    @property
    def same(self) -> bool:
        """Return whether both have the same rows, each as often."""
        return not self.rows


def compare(first: str | os.PathLike[str], shadow: str | os.PathLike[str], limit: int = 10) -> Comparison:
    """Compare two files of JSON lines; a file that is not there has no rows. Rows of at most `limit` keys are shown.

    Files may be larger than memory: a digest is kept of each row whose partner was not met yet.
    """
    left: Counter[bytes] = Counter()
    many, many_of_shadow = 0, 0
    for pair in zip_longest(_lines(first), _lines(shadow)):
        many += pair[0] is not None
        many_of_shadow += pair[1] is not None
        for line, sign in zip(pair, (1, -1)):
            if line is None:
                continue
            digest = _digest(line)
            left[digest] += sign
            if not left[digest]:
                del left[digest]
    if not left:
        return Comparison(many, many_of_shadow)
    shown: dict[str, tuple[list[str], list[str]]] = {}
    keys: set[bytes] = set()
    for i, (path, sign) in enumerate(((first, 1), (shadow, -1))):
        open_still = {digest: sign * count for digest, count in left.items() if sign * count > 0}
        for line in _lines(path):
            digest = _digest(line)
            if not open_still.get(digest):
                continue
            open_still[digest] -= 1
            key = json.dumps(json.loads(line)["key"], ensure_ascii=False)
            keys.add(_digest(key.encode()))
            if key in shown or len(shown) < limit:
                shown.setdefault(key, ([], []))[i].append(line.decode().rstrip("\n"))
    return Comparison(many, many_of_shadow, sum(map(abs, left.values())), len(keys), shown)


def _digest(line: bytes) -> bytes:
    return blake2b(line, digest_size=16).digest()


def _lines(path: Any) -> Iterator[bytes]:
    try:
        with open(path, "rb") as file:
            yield from file
    except FileNotFoundError:
        return
