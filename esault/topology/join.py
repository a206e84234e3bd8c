"""The bolt behind joins by window: the tuples of one key and window on each side, put together."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from esault.errors import TopologyError
from esault.topology.bolt import Bolt

__all__ = ["KEEPS", "KINDS", "LEFT", "RIGHT", "Join", "check_keep", "check_kind"]

#: what `process_stream` is told by joins of two
LEFT, RIGHT = "left", "right"
KINDS = ("inner", "left", "right", "outer")
#: which tuples of a side count
KEEPS = ("all", "first", "last")


def check_kind(where: str, kind: object, kinds: Sequence[str] = KINDS) -> str:
    """Return the checked kind of join: which sides emit tuples without a partner. Raises TopologyError."""
    if kind not in kinds:
        raise TopologyError(f"{where}: kind={kind!r} is not one of {', '.join(map(repr, kinds))}")
    return str(kind)


def check_keep(where: str, keep: object) -> str:
    """Return which tuples of a side count. Raises TopologyError."""
    if keep not in KEEPS:
        raise TopologyError(
            f"{where}: keep={keep!r} is not one of {', '.join(map(repr, KEEPS))}: whether each tuple of a side is joined, or the first "
            "or the last one alone"
        )
    return str(keep)


class Join(Bolt[Any, Any, Any, Any]):
    """Emits one tuple of each side under the key: with keep="all" every combination, as soon as its last tuple is there.

    With "first" and "last" only the earliest or latest tuple of each side counts, of those of one time the one that came first or last;
    so one combination goes out, when the window closes. Sides that have no tuple by then are None, if the kind says so.
    """

    __slots__ = ("keep", "kind", "names", "sides", "times")

    def __init__(
        self, kind: str, names: Sequence[str], keep: str = "all", times: Sequence[Callable[[Any], float]] = ()
    ) -> None:
        """`names`: what `process_stream` calls the sides; `times` gives their values' times, where `keep` is not "all"."""
        self.kind, self.keep, self.times = kind, keep, times
        self.names = names
        self.sides: list[list[Any]] = [[] for _ in names]

    def process_stream(self, stream: str, key: Any, value: Any) -> None:
        """Put it together with all that the other sides have so far."""
        of = self.names.index(stream)
        rows = self.sides[of]
        if self.keep != "all":
            if rows:
                time = self.times[of]
                new, old = time(value), time(rows[0])
                if new >= old if self.keep == "first" else new < old:
                    return
            self.sides[of] = [value]
            return
        rows.append(value)
        if len(self.sides) == 2:
            for other in self.sides[1 - of]:
                self.emit(key, (other, value) if of else (value, other))
        elif all(self.sides):
            for found in itertools.product(*self.sides[:of], (value,), *self.sides[of + 1 :]):
                self.emit(key, found)

    def finish(self) -> None:
        """The window has closed."""
        sides, kind = self.sides, self.kind
        if all(sides):
            if self.keep != "all":
                self.emit(self.key, tuple(rows[0] for rows in sides))
        elif kind == "outer" or (kind == "left" and sides[0]) or (kind == "right" and sides[-1]):
            for found in itertools.product(*[rows or (None,) for rows in sides]):
                self.emit(self.key, found)

    def __getstate__(self) -> dict[str, Any]:
        return {"sides": self.sides}

    def __setstate__(self, state: dict[str, Any]) -> None:
        sides = state["sides"] if "sides" in state else (state["left"], state["right"])  # as it was written before
        self.sides = [list(rows) for rows in sides]
