"""Aggregates for `stream.aggregate(name, {...})`: `count()`, `sum("paid")` and their like.

`of` says which part of a value is meant: the name of a field, a function of the value, or all of it.
"""

from __future__ import annotations

from esault.aggregates.sketches import DistinctCount, Quantile
from esault.topology.aggregates.aggregate import Aggregate, Collect, Count, Extreme, Mean, Of, Sum, TopK

__all__ = ["Aggregate", "collect", "count", "distinct", "max", "mean", "min", "quantile", "sum", "top_k"]


def count() -> Aggregate:
    """The number of values."""
    return Count()


def sum(of: Of = None) -> Aggregate:
    """Their sum. Of floats the last digits depend on the order in which they came."""
    return Sum(of)


def mean(of: Of = None) -> Aggregate:
    """Their sum by their number."""
    return Mean(of)


def min(of: Of = None) -> Aggregate:
    """The least."""
    return Extreme("min", of)


def max(of: Of = None) -> Aggregate:
    """The greatest."""
    return Extreme("max", of)


def quantile(q: float, of: Of = None) -> Aggregate:
    """About the value that a share of `q` of the numbers is not above, 0.5 for the median. Needs `esault[sketches]`."""
    return Quantile(q, of)


def distinct(of: Of = None) -> Aggregate:
    """About the number of different values. Needs `esault[sketches]`."""
    return DistinctCount(of)


def top_k(k: int, of: Of = None) -> Aggregate:
    """A list of the `k` values whose part `of` is greatest, the greatest first."""
    return TopK(k, of)


def collect(of: Of = None) -> Aggregate:
    """A list of all of them."""
    return Collect(of)
