"""What a class with fields is known by, and how its objects are read."""

from __future__ import annotations

import collections
import dataclasses
import enum
import subprocess
import sys
from typing import TYPE_CHECKING

import attr
import attrs
import pytest
from typing_extensions import NotRequired, TypedDict

from esault.payload.record import Unresolved, record_of
from tests.unit.records import CLASSES, Colour, Keys, Open

if TYPE_CHECKING:
    from fractions import Fraction


class Some(TypedDict, total=False):
    count: int


class Rest(Some):
    price: NotRequired[float]
    name: str


@dataclasses.dataclass
class Half:
    known: int
    unknown: Fraction


@dataclasses.dataclass
class More(Half):
    further: str = "x"


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_fields_values_and_annotations_of_each_kind_of_class(cls):
    record = record_of(cls)
    assert record is record_of(cls)
    assert record.names == ("count", "price", "colour")
    thing = cls(count=1, price=2.5, colour=Colour.RED)
    assert record.values(thing) == (1, 2.5, Colour.RED)
    assert record.items(thing) == {"count": 1, "price": 2.5, "colour": Colour.RED}
    assert record.annotations() == {"count": int, "price": float | None, "colour": Colour}


def test_a_typed_dict_has_fields_though_its_objects_are_dicts():
    record = record_of(Keys)
    assert record.names == ("count", "price", "colour")
    assert record.values(Keys(count=1, price=None, colour=Colour.RED)) == (1, None, Colour.RED)
    assert record.optional == frozenset()
    assert record_of(Some).optional == {"count"}
    assert record_of(Rest).names == ("count", "price", "name")
    assert record_of(Rest).annotations() == {"count": int, "price": NotRequired[float], "name": str}
    assert record_of(dict) is None


def test_fields_of_a_class_are_those_of_its_bases_too():
    assert record_of(More).names == ("known", "unknown", "further")


def test_what_is_allowed_beyond_the_fields_is_among_the_items():
    assert record_of(Open).items(Open.model_validate({"count": 1, "note": "n"})) == {"count": 1, "note": "n"}


def test_one_field_and_none_are_read_as_several_are():
    one, none = dataclasses.make_dataclass("One", [("x", int)]), dataclasses.make_dataclass("Nothing", [])
    assert record_of(one).values(one(3)) == (3,)
    assert record_of(none).values(none()) == ()


def test_what_is_no_class_of_fields_is_none():
    class Point:
        def __init__(self):
            self.x = 1

    @dataclasses.dataclass
    class Size:
        inches: int

    class Paper(Size, enum.Enum):
        A4 = 12

    for cls in (int, str, tuple, list, dict, object, Point, Paper, Exception):
        assert record_of(cls) is None


def test_a_field_that_was_never_set_is_an_attribute_error():
    thing = More(1, 2)
    del thing.known
    with pytest.raises(AttributeError, match="known"):
        record_of(More).values(thing)


def test_an_annotation_that_cannot_be_resolved_is_given_as_its_text_and_the_others_as_they_are():
    found = record_of(More).annotations()
    assert (found["known"], found["further"]) == (int, str)
    assert found["unknown"] == Unresolved("Fraction", "name 'Fraction' is not defined")


def test_fields_without_annotations_are_left_out():
    assert record_of(collections.namedtuple("P", "x y")).annotations() == {}
    old = attr.make_class("Old", {"x": attr.ib(type=int), "y": attr.ib()})
    assert record_of(old).annotations() == {"x": int}
    assert record_of(attrs.make_class("New", ["x"])).annotations() == {}


def test_looking_at_a_class_loads_no_library():
    program = """
import sys
from esault.payload.record import record_of
from esault.payload.scalar import plainer
assert record_of(int) is None and plainer(int) is None
print([name for name in ("attr", "attrs", "msgspec", "pydantic", "numpy") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
