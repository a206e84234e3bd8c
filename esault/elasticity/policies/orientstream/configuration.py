"""Configurations: how wide each unit is, what is predicted of that, and which one is best (Wang et al. 2019, (1) to (4))."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from esault.value_class import value_class

__all__ = ["Choice", "Configuration", "Node", "Prediction", "choose", "query_latency", "source_latency"]


@value_class(frozen=True)
class Configuration:
    """The settings of a run: sub-units of each unit, and bytes of memory for each of them where the runtime sets that."""

    widths: tuple[tuple[str, int], ...]
    memory: int | None = None

    @property
    def parallelism(self) -> int:
        """All sub-units together."""
        return sum(n for _, n in self.widths)

    def __str__(self) -> str:
        return ", ".join(f"{unit} {n}" for unit, n in self.widths)


@value_class(frozen=True)
class Node:
    """Use of one host: shares of its processors and of its memory, 0 .. 1 both."""

    cpu: float
    memory: float


@value_class(frozen=True)
class Prediction:
    """The prediction for a configuration: latency in seconds, throughput in tuples a second."""

    nodes: tuple[Node, ...]
    latency: float
    throughput: float

    def use(self, alpha: float = 0.5, beta: float = 0.5) -> float:
        """(3), over the nodes."""
        return sum(alpha * node.cpu + beta * node.memory for node in self.nodes)


@value_class(frozen=True)
class Choice:
    """The configuration; `feasible`: it meets the thresholds, else none does and it is the fastest."""

    configuration: Configuration
    prediction: Prediction
    feasible: bool


def choose(
    predictions: Mapping[Configuration, Prediction],
    latency: float,
    throughput: float,
    alpha: float = 0.5,
    beta: float = 0.5,
) -> Choice:
    """(4): of those predicted below `latency` and above `throughput` the one of least use; the first of equal ones.

    Where none is, the one of least latency, then of most throughput: latency is protected, whatever it takes.
    """
    fit = {c: p for c, p in predictions.items() if p.latency < latency and p.throughput > throughput}
    if fit:
        best = min(fit, key=lambda c: fit[c].use(alpha, beta))
    else:
        best = min(predictions, key=lambda c: (predictions[c].latency, -predictions[c].throughput))
    return Choice(best, predictions[best], bool(fit))


def source_latency(instances: Sequence[float]) -> float:
    """(1): mean over the parallel instances of one source, seconds."""
    return sum(instances) / len(instances)


def query_latency(sources: Iterable[float]) -> float:
    """(2): the largest over the sources, seconds; 0 where there is none."""
    return max(sources, default=0.0)
