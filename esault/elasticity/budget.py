"""A budget: the most that a run may hold at any time, in sub-units or in what their slots cost an hour."""

from __future__ import annotations

import math
import re

from esault.errors import UsageError
from esault.value_class import value_class

__all__ = ["Budget", "unpriced"]

#: share of a budget by which a sum of prices may be above it: they are fractions that add up with an error
ROUNDING = 1e-9


@value_class(frozen=True)
class Budget:
    """At most one of both is above 0; with neither there is no budget."""

    #: the most sub-units, spouts' among them
    sub_units: int = 0
    #: the most that the slots may cost an hour together, in the money of `esault node --slot-price`
    hourly: float = 0.0

    @classmethod
    def parse(cls, value: str | int) -> Budget:
        """Return the budget that is written as `8` or `3.50/h`. Raises UsageError."""
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(/\s*h)?\s*", str(value))
        number = float(found.group(1)) if found is not None else 0.0
        if found is None or not 0 < number < math.inf or (not found.group(2) and not found.group(1).isdigit()):
            raise UsageError(
                f"--budget {value}: write the most sub-units, such as 8, or the most money an hour, such as 3.50/h"
            )
        return cls(hourly=number) if found.group(2) else cls(int(found.group(1)))

    def __str__(self) -> str:
        return f"{self.hourly:g}/h" if self.hourly else f"{self.sub_units}"

    def bought(self, price: float) -> int:
        """Return how many sub-units it allows where each slot costs so much an hour."""
        return self.sub_units or int(self.hourly * (1.0 + ROUNDING) / price)


def unpriced(host: str) -> str:
    """Return what is said of a host without a price to a run with a budget in money."""
    return f"host {host} has no price, and the budget is in money: start its node with --slot-price (0 where a slot costs nothing)"
