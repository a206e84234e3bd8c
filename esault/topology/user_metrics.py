"""Metrics of a user's own: `self.context.counter("orders").inc()`, gauges and histograms.

They are kept in the process of the sub-unit and added up by the command. They are no state: a sub-unit that begins anew begins at
0, what was counted in all of them is added up, and a tuple that is processed again is counted again.
"""

from __future__ import annotations

import bisect
import logging
import math
import re
from collections.abc import Sequence
from typing import Any

__all__ = ["BUCKETS", "UserCounter", "UserGauge", "UserHistogram", "UserMetrics", "kept"]

#: upper bounds of a histogram's buckets where none are said: seconds of calls, as Prometheus' libraries have them
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
#: names with labels that one sub-unit may have: each travels a few times a second, and Prometheus keeps each for ever
MOST = 1000
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_TAKEN = frozenset(("topology", "unit", "sub_unit", "le", "quantile"))


class _Metric:
    """One metric with its labels. An object may keep it as an attribute: it is no state, and is found again by its name."""

    kind = ""
    __slots__ = ("_begun", "_labels", "_name")

    def __init__(self, name: str, labels: dict[str, str]) -> None:
        self._name, self._labels = name, labels
        self._begun = False

    def __reduce__(self) -> tuple[Any, ...]:
        return kept, (self.kind, self._name, tuple(self._labels.items()))


class UserCounter(_Metric):
    """A number that only grows."""

    kind = "counter"
    __slots__ = ("value",)

    def __init__(self, name: str, labels: dict[str, str]) -> None:
        super().__init__(name, labels)
        self.value = 0.0

    def inc(self, amount: float = 1) -> None:
        """Add to it. Raises ValueError for less than 0, and for what is no number: it would be no number for ever."""
        if not amount >= 0:
            raise ValueError(f"counter {self._name!r} only grows, and was given {amount}: a gauge goes up and down")
        self._begun = True
        self.value += amount


class UserGauge(_Metric):
    """A number that goes up and down; each sub-unit has its own."""

    kind = "gauge"
    __slots__ = ("value",)

    def __init__(self, name: str, labels: dict[str, str]) -> None:
        super().__init__(name, labels)
        self.value = 0.0

    def set(self, value: float) -> None:
        """Set it."""
        self._begun = True
        self.value = float(value)

    def inc(self, amount: float = 1) -> None:
        """Add to it."""
        self.set(self.value + amount)

    def dec(self, amount: float = 1) -> None:
        """Take from it."""
        self.set(self.value - amount)


class UserHistogram(_Metric):
    """The number of values up to each of some bounds, and their sum."""

    kind = "histogram"
    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, name: str, labels: dict[str, str], bounds: Sequence[float] = BUCKETS) -> None:
        super().__init__(name, labels)
        # a last bound of infinity, as Prometheus' libraries have it, is there anyway
        self.bounds = tuple(sorted({float(each) for each in bounds if math.isfinite(each)}))
        self.counts = [0] * (len(self.bounds) + 1)
        self.sum = 0.0

    def __reduce__(self) -> tuple[Any, ...]:
        made, about = super().__reduce__()
        return made, (*about, self.bounds)

    def observe(self, value: float) -> None:
        """Count a value."""
        self._begun = True
        # nan is up to no bound: it counts with what is above all of them
        self.counts[bisect.bisect_left(self.bounds, value) if value == value else -1] += 1
        self.sum += value


_KINDS: dict[str, type[_Metric]] = {each.kind: each for each in (UserCounter, UserGauge, UserHistogram)}


class UserMetrics:
    """The metrics of one sub-unit."""

    #: that of the sub-unit that this process began last; real processes have one
    here: UserMetrics | None = None

    def __init__(self) -> None:
        self._all: dict[tuple[str, tuple[tuple[str, str], ...]], Any] = {}
        self._about: dict[str, tuple[str, str]] = {}

    def get_or_create(self, kind: str, name: str, description: str, labels: dict[str, str], *more: Any) -> Any:
        """Return the metric of this name and labels, made where it is asked for first. Raises ValueError."""
        key = (name, tuple(labels.items()))
        found = self._all.get(key)
        if found is None:
            self._check(kind, name, labels)
            texts = {label: str(value) for label, value in labels.items()}
            found = _KINDS[kind](name, texts, *more)
            if len(self._all) >= MOST:
                if len(self._all) == MOST:
                    logging.getLogger(__name__).warning(
                        "more than %d metrics in one sub-unit: %s%s and further ones are not counted; labels are for few "
                        "values, such as kinds, not keys",
                        *(MOST, name, texts or ""),
                    )
                    self._all[key] = found
                return found
            self._about.setdefault(name, (kind, description))
            self._all[key] = found
        elif found.kind != kind:
            raise ValueError(f"metric {name!r} is a {found.kind} already, and cannot be a {kind} too")
        return found

    def _check(self, kind: str, name: str, labels: dict[str, str]) -> None:
        if not _NAME.fullmatch(name) or name.startswith("esault_"):
            raise ValueError(
                f"{name!r} is no name of a metric: letters, digits and _, such as orders_refused, and not esault_..."
            )
        odd = [label for label in labels if not _NAME.fullmatch(label)]
        if odd:
            raise ValueError(
                f"metric {name!r}: {odd[0]!r} is no name of a label: letters (a-z, A-Z), digits and _, such as kind"
            )
        wrong = [label for label in labels if label in _TAKEN or label.startswith("__")]
        if wrong:
            raise ValueError(f"metric {name!r}: the label {wrong[0]!r} is the engine's own; take another name")
        known = self._about.get(name)
        if known is not None and known[0] != kind:
            raise ValueError(f"metric {name!r} is a {known[0]} already, and cannot be a {kind} too")

    def readings(self) -> tuple[tuple[str, str, str, tuple[tuple[str, str], ...], Any], ...]:
        """Return (kind, name, description, labels, value) of each that has been used; of a histogram (bounds, counts, sum)."""
        found = []
        for (name, _), each in list(self._all.items())[:MOST]:
            if each._begun:
                value = (each.bounds, tuple(each.counts), each.sum) if each.kind == "histogram" else each.value
                labels = tuple(sorted(each._labels.items()))
                found.append((each.kind, name, self._about[name][1], labels, value))
        return tuple(found)


def kept(kind: str, name: str, labels: tuple[tuple[str, str], ...], *more: Any) -> Any:
    """Return the metric that an object had as an attribute, in the process that the object has come to."""
    metrics = UserMetrics.here
    if metrics is None:
        metrics = UserMetrics.here = UserMetrics()
    return metrics.get_or_create(kind, name, "", dict(labels), *more)
