"""What a process of a check is given and gives back is what it was."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import pytest

from esault.testing.killable_process import KillableProcess


class Kind(enum.IntFlag):
    GOOD = 1


@dataclass
class Point:
    x: int


@pytest.mark.parametrize("value", [[1, [2]], Kind.GOOD, Point(3), {"a": (1, [2])}])
def test_values_keep_their_types(value):
    process = KillableProcess(lambda hook, arguments: [type(arguments[0]).__name__, arguments[0]])
    try:
        name, back = process.call("echo", value)
    finally:
        process.kill()
    assert name == type(value).__name__
    assert type(back) is type(value) and back == value
