from __future__ import annotations

import enum
from datetime import datetime
from pathlib import Path, PurePosixPath, PureWindowsPath
from uuid import UUID

import numpy as np
import pytest

from esault.payload.scalar import plainer


class Colour(enum.Enum):
    RED = ("red", 1)


class Level(enum.IntEnum):
    HIGH = 3


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Colour.RED, ("red", 1)),
        (Level.HIGH, 3),
        (UUID(int=7), "00000000-0000-0000-0000-000000000007"),
        (Path("a/b"), "a/b"),
        (PurePosixPath("/x"), "/x"),
        (PureWindowsPath("c:/x"), "c:\\x"),
        (np.int64(3), 3),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        (np.datetime64("2026-01-02T03:04:05"), datetime(2026, 1, 2, 3, 4, 5)),
    ],
)
def test_each_stands_for_a_plainer_one(value, expected):
    plain = plainer(type(value))(value)
    assert plain == expected
    assert type(plain) is type(expected)


@pytest.mark.parametrize("value", [1, "x", b"x", None, 2.5, datetime(2026, 1, 1), [1], {"a": 1}, object()])
def test_what_is_plain_has_no_plainer_one(value):
    assert plainer(type(value)) is None


@pytest.mark.parametrize("value", [np.datetime64(1, "ns"), np.timedelta64(1, "ns"), np.longdouble(1)])
def test_what_python_has_no_type_for_stays_as_it_is(value):
    assert plainer(type(value))(value) is value
