"""Aggregates: what is known of many values, taken in one by one, and merged with what is known of others."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from esault.errors import TopologyError
from esault.topology.function import check_function

__all__ = ["Aggregate", "Collect", "Count", "Extreme", "Mean", "Sum", "TopK", "field_of"]

#: which part of a value is meant: a function of it, the name of a field of it, or all of it
Of = Callable[[Any], Any] | str | None

#: of what `TopK` knows of a value
_PART = operator.itemgetter(0)


def field_of(where: str, of: Of) -> Callable[[Any], Any] | None:
    """Return the function that gives the part of a value; None: all of it. Raises TopologyError."""
    if of is None:
        return None
    if isinstance(of, str):
        item, attribute = operator.itemgetter(of), operator.attrgetter(of)

        def part(value: Any) -> Any:
            try:
                # most are dicts, and to ask an abstract class takes as long as the rest
                return item(value) if type(value) is dict or isinstance(value, Mapping) else attribute(value)
            except (KeyError, AttributeError) as error:
                there = f"; it has {', '.join(map(repr, value)) or 'none'}" if isinstance(value, Mapping) else ""
                raise type(error)(
                    f"{where}: a value of type {type(value).__name__} has no field {of!r}{there}"
                ) from error

        return part
    check_function(f"{where}, of", of, takes=("the value",))
    return of


class Aggregate:
    """One aggregate, as it was asked for; engines that have it by name find it by `kind`, `of` and `options`.

    What it knows of values is a plain value or, of sketches, an object that `wire` makes bytes of. No method changes what it is given
    but `add` and `merge`, which may change their first argument and return what holds afterwards.
    """

    #: its name
    kind = ""

    def __init__(self, of: Of = None, **options: Any) -> None:
        self.of = of
        self.options = options
        self._part = field_of(f"{self.kind}(...)", of)

    def __repr__(self) -> str:
        said = [] if self.of is None else [repr(self.of) if isinstance(self.of, str) else "of=..."]
        return f"{self.kind}({', '.join([*said, *(f'{name}={value!r}' for name, value in self.options.items())])})"

    def part(self, value: Any) -> Any:
        """The part of a value that it is about."""
        return value if self._part is None else self._part(value)

    def first(self, value: Any) -> Any:
        """Return what is known of one value."""
        raise NotImplementedError

    def add(self, known: Any, value: Any) -> Any:
        """Return what is known with one value more."""
        return self.merge(known, self.first(value))

    def try_add(self, known: Any, value: Any) -> None:
        """Raise what `add` raises for this value; change nothing."""
        self.add(known, value)

    def take_back(self, known: Any) -> None:
        """Undo the last `add` where it has changed what it was given. Sketches cannot: they stay near the truth."""

    def merge(self, known: Any, other: Any) -> Any:
        """Return what is known of the values of both."""
        raise NotImplementedError

    def take_out(self, known: Any, other: Any) -> None:
        """Undo the last `merge` where it has changed what it was given. Sketches cannot."""

    def result(self, known: Any) -> Any:
        """Return the aggregate itself."""
        return known

    def wire(self, known: Any) -> Any:
        """Return what is known as a plain value."""
        return known

    def read(self, wired: Any) -> Any:
        """Return what is known, from what `wire` gave."""
        return wired


def _summand(part: Any) -> Any:
    """Check that the first part of a sum is one: to all that came behind it, it would be the one that does not fit."""
    if part is None or isinstance(part, (str, bytes)):
        raise TypeError(f"{part!r} ({type(part).__name__}) cannot be added up; leave it out with filter(...) before")
    return int(part) if type(part) is bool else part  # as in a sum of several


def _comparable(part: Any) -> Any:
    if part is None:
        raise TypeError("None is neither more nor less than another value; leave it out with filter(...) before")
    return part


class Count(Aggregate):
    """The number of values."""

    kind = "count"

    def first(self, value: Any) -> int:
        return 1

    def add(self, known: int, value: Any) -> int:
        return known + 1

    def merge(self, known: int, other: int) -> int:
        return known + other


class Sum(Aggregate):
    """Their sum."""

    kind = "sum"

    def first(self, value: Any) -> Any:
        return _summand(self.part(value))

    def add(self, known: Any, value: Any) -> Any:
        return known + self.part(value)

    def merge(self, known: Any, other: Any) -> Any:
        return known + other


class Mean(Aggregate):
    """Their sum by their number."""

    kind = "mean"

    def first(self, value: Any) -> tuple[Any, int]:
        return _summand(self.part(value)), 1

    def add(self, known: tuple[Any, int], value: Any) -> tuple[Any, int]:
        return known[0] + self.part(value), known[1] + 1

    def merge(self, known: tuple[Any, int], other: tuple[Any, int]) -> tuple[Any, int]:
        return known[0] + other[0], known[1] + other[1]

    def result(self, known: tuple[Any, int]) -> Any:
        return known[0] / known[1]


class Extreme(Aggregate):
    """The least or the greatest of them; of equal ones that which came first.

    NaN is neither more nor less than a number: it is the result where nothing else came, so that the order in which values are put
    together makes no difference.
    """

    def __init__(self, kind: str, of: Of = None) -> None:
        self.kind = kind
        super().__init__(of)
        self._least = kind == "min"

    def first(self, value: Any) -> Any:
        part = self.part(value)
        return part if part is not None else _comparable(part)  # each value comes by here

    def merge(self, known: Any, other: Any) -> Any:
        if other < known if self._least else other > known:
            return other
        return other if known != known else known


class Collect(Aggregate):
    """All of them, as a list, in the order in which they came."""

    kind = "collect"

    def first(self, value: Any) -> list[Any]:
        return [self.part(value)]

    def add(self, known: list[Any], value: Any) -> list[Any]:
        known.append(self.part(value))
        return known

    def try_add(self, known: list[Any], value: Any) -> None:
        self.part(value)

    def take_back(self, known: list[Any]) -> None:
        known.pop()

    def merge(self, known: list[Any], other: list[Any]) -> list[Any]:
        known.extend(other)
        return known

    def take_out(self, known: list[Any], other: list[Any]) -> None:
        del known[len(known) - len(other) :]

    def result(self, known: list[Any]) -> list[Any]:
        return list(known)

    def wire(self, known: list[Any]) -> list[Any]:
        return list(known)

    def read(self, wired: Any) -> list[Any]:
        return list(wired)


class TopK(Aggregate):
    """The `k` values of which the part is greatest, the greatest first; of equal ones those that came first. Those of NaN are left out."""

    kind = "top_k"

    def __init__(self, k: int, of: Of = None) -> None:
        if isinstance(k, bool) or not isinstance(k, int) or k < 1:
            raise TopologyError(f"top_k(k={k!r}): k must be a whole number from 1 on")
        super().__init__(of, k=k)
        self._k = k

    def first(self, value: Any) -> list[tuple[Any, Any]]:
        part = _comparable(self.part(value))
        return [(part, value)] if part == part else []

    def add(self, known: list[tuple[Any, Any]], value: Any) -> list[tuple[Any, Any]]:
        part = self.part(value)
        low, high = 0, len(known)
        if part != part or (high == self._k and not part > known[-1][0]):
            return known
        while low < high:  # behind those that are equal
            middle = (low + high) // 2
            if part > known[middle][0]:
                high = middle
            else:
                low = middle + 1
        return [*known[:low], (part, value), *known[low : self._k - 1]]

    def merge(self, known: list[tuple[Any, Any]], other: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        if not other or (len(known) == self._k and not other[0][0] > known[-1][0]):
            return known
        return sorted([*known, *other], key=_PART, reverse=True)[: self._k]

    def result(self, known: list[tuple[Any, Any]]) -> list[Any]:
        return [value for _, value in known]

    def wire(self, known: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        return list(known)

    def read(self, wired: Any) -> list[tuple[Any, Any]]:
        return [tuple(each) for each in wired]
