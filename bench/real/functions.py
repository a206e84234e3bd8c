"""Functions that users wrote: of one value, or of a total and a value. All engines call these very ones."""

from __future__ import annotations

import time
from typing import Any

__all__ = [
    "CHAIN",
    "add_one",
    "by_user",
    "count",
    "first_field",
    "is_paid",
    "length",
    "minute_total",
    "revise",
    "spend",
    "waited",
    "words",
]

#: seconds that a bolt waits for its service
WAIT = 0.001


def words(line: str) -> list[str]:
    """The words of a line."""
    return line.lower().split()


def count(total: int, value: object) -> int:
    """One more."""
    return total + 1


def is_paid(event: dict[str, Any]) -> bool:
    """Three events in four."""
    return bool(event["status"] == "paid")


def by_user(event: dict[str, Any]) -> str:
    """The key of an event."""
    return str(event["user"])


def spend(total: tuple[int, int], event: dict[str, Any]) -> tuple[int, int]:
    """Events and cents of a user so far."""
    return total[0] + 1, total[1] + event["cents"]


def add_one(value: int) -> int:
    """A step."""
    return value + 1


def double(value: int) -> int:
    """A step."""
    return value * 2


def minus_three(value: int) -> int:
    """A step."""
    return value - 3


def last_digits(value: int) -> int:
    """A step."""
    return value % 1_000_003


#: five small things to do to a number that came as text
CHAIN = (int, add_one, double, minus_three, last_digits)


def first_field(line: str) -> str:
    """The key of a line whose fields stand apart by a blank."""
    return line.partition(" ")[0]


def revise(line: str) -> str:
    """A document of 10 kB, changed."""
    return line.swapcase()


def minute_total(total: tuple[int, int], event: dict[str, Any]) -> tuple[int, int]:
    """Events and cents of a user within a minute."""
    return total[0] + 1, total[1] + event["cents"]


def waited(line: str) -> str:
    """Return what a service answers after a millisecond."""
    time.sleep(WAIT)
    return line


def length(line: str) -> int:
    """The size of a line."""
    return len(line)
