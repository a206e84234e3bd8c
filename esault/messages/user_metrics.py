"""Metrics of a user's own, as sub-units report them and a unit adds them up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from esault.value_class import value_class

__all__ = ["MetricReading", "add_up"]


@value_class(frozen=True)
class MetricReading:
    """One metric with its labels, at one moment."""

    #: "counter", "gauge" or "histogram"
    kind: str
    name: str
    description: str
    labels: tuple[tuple[str, str], ...]
    #: of a histogram: (upper bounds, counts between them, sum)
    value: Any

    def __str__(self) -> str:
        """Its name with its labels, as Prometheus writes it."""
        labels = ",".join(f'{name}="{value}"' for name, value in self.labels)
        return f"{self.name}{{{labels}}}" if labels else self.name

    def with_labels(self, **more: object) -> MetricReading:
        """Return it with more labels."""
        return replace(self, labels=(*self.labels, *((name, str(value)) for name, value in more.items())))


def add_up(readings: Iterable[MetricReading]) -> Iterator[MetricReading]:
    """Yield one for each name and labels. Of gauges, and of histograms with other bounds, the last counts."""
    found: dict[tuple[str, tuple[tuple[str, str], ...]], MetricReading] = {}
    for each in readings:
        key, value = (each.name, each.labels), each.value
        before = found.get(key)
        if before is not None and before.kind == each.kind:
            if each.kind == "counter":
                value += before.value
            elif each.kind == "histogram" and before.value[0] == value[0]:
                counts = tuple(a + b for a, b in zip(before.value[1], value[1]))
                value = (value[0], counts, before.value[2] + value[2])
        found[key] = replace(each, value=value)
    yield from found.values()
