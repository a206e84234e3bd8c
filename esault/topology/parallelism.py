"""The number of sub-units of a unit: at the start, at least and at most."""

from __future__ import annotations

from esault.errors import TopologyError
from esault.value_class import value_class

__all__ = ["Parallelism"]


@value_class(frozen=True)
class Parallelism:
    """Numbers of sub-units, as given to the topology's calls."""

    start: int = 1
    least: int = 1
    #: None: as many as there are slots
    most: int | None = None

    def check(self, unit: str) -> None:
        """Raise TopologyError unless 1 <= least <= start <= most."""
        given: dict[str, object] = {"parallelism": self.start, "min_parallelism": self.least}
        if self.most is not None:
            given["max_parallelism"] = self.most
        for argument, value in given.items():
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise TopologyError(f"unit {unit!r}: {argument}={value!r} must be a whole number from 1 on")
        if self.most is not None and self.least > self.most:
            raise TopologyError(
                f"unit {unit!r}: min_parallelism={self.least} is greater than max_parallelism={self.most}; change one"
            )
        if self.start < self.least or (self.most is not None and self.start > self.most):
            bounds = [f"min_parallelism={self.least}"]
            if self.most is not None:
                bounds.append(f"max_parallelism={self.most}")
            raise TopologyError(
                f"unit {unit!r}: parallelism={self.start}, with which it starts, does not fit {' and '.join(bounds)}; "
                "change one of them"
            )

    def one(self, unit: str, reason: str) -> Parallelism:
        """The same for a unit that has one sub-unit only; `reason` says why, and what to do about it."""
        for argument, value in (("parallelism", self.start), ("max_parallelism", self.most)):
            if value is not None and value > 1:
                raise TopologyError(f"unit {unit!r}: {argument}={value}, but {reason}")
        return Parallelism(1, 1, 1)
