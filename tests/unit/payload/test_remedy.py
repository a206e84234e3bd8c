"""Remedies: each names an expression that works."""

from __future__ import annotations

import array
import collections
import dataclasses
import enum
import fractions
import ipaddress
import math
import pathlib
import types
import uuid
from datetime import time, timedelta
from typing import NamedTuple

import numpy
import pytest

from esault.payload.codec import Codec
from esault.payload.remedy import remedy, type_name


@dataclasses.dataclass
class Point:
    x: int
    y: int


class Colour(enum.Enum):
    RED = "red"


class Slim:
    def _asdict(self):
        return {"a": 1}


@pytest.mark.parametrize(
    ("value", "expression"),
    [
        (numpy.int64(3), "value.item()"),
        (numpy.float32(0.5), "value.item()"),
        (numpy.bool_(True), "value.item()"),
        (numpy.array([1, 2]), "tuple(value.tolist())"),
        (array.array("i", [1]), "tuple(value)"),
        (1j, "(value.real, value.imag)"),
        (range(3), "tuple(value)"),
        ((x for x in "abc"), "list(value)"),
        ({"a": 1}.items(), "list(value)"),
        (map(str, [1]), "list(value)"),
        (collections.deque([1]), "tuple(value)"),
        (timedelta(seconds=1.5), "value.total_seconds()"),
        (time(12, 30), "value.isoformat()"),
        (fractions.Fraction(1, 3), "(value.numerator, value.denominator)"),
        (uuid.UUID(int=5), "str(value)"),
        (pathlib.Path("a/b"), "str(value)"),
        (ipaddress.ip_address("127.0.0.1"), "str(value)"),
        (Colour.RED, "value.value"),
        (Slim(), "value._asdict()"),
    ],
    ids=lambda x: type(x).__name__ if not isinstance(x, str) else "",
)
def test_the_expression_that_a_remedy_names_can_travel(value, expression):
    assert remedy(value) == f"use {expression}"
    Codec().pack(eval(expression, {"value": value}))


def test_a_remedy_names_the_place_it_is_for():
    assert remedy(numpy.int64(3), "value[2]['a']") == "use value[2]['a'].item()"
    assert remedy(1j, "value[0]") == "use (value[0].real, value[0].imag)"


@pytest.mark.parametrize("code", [len, lambda: 0, "".join, math, Point, types.SimpleNamespace])
def test_code_has_no_expression(code):
    assert remedy(code) == "code does not travel: use a name or a number that stands for it"


def test_an_object_of_the_users_is_advised_in_general():
    assert remedy(object()) == "make it in open(context), or use a tuple, a dict, a str or numbers made from it"


def test_types_are_named_as_their_users_write_them():
    class Inner(NamedTuple):
        x: int

    assert type_name(numpy.int64) == "numpy.int64"
    assert type_name(int) == "int"
    assert type_name(Point) == "Point"
    assert type_name(timedelta) == "datetime.timedelta"
    assert type_name(pathlib.PurePosixPath) == "pathlib.PurePosixPath"
    assert type_name(Inner).endswith("Inner")
