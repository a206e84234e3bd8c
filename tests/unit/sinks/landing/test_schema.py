"""Columns from Python types."""

from __future__ import annotations

import collections
import dataclasses
import enum
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NewType, Optional
from uuid import UUID

import pytest
from typing_extensions import NotRequired, TypedDict

from esault.errors import SinkError
from esault.sinks.landing.schema import parse_columns, schema_from_json, schema_to_json
from tests.unit.records import CLASSES, Colour, Keys

if TYPE_CHECKING:
    from fractions import Fraction

ALL = {
    "a": str,
    "b": int,
    "c": float,
    "d": bool,
    "e": bytes,
    "f": datetime,
    "g": date,
    "h": Decimal,
    "i": Optional[str],  # noqa: UP045 - both spellings are allowed
    "j": int | None,
    "k": None | datetime,
}


def test_every_type_is_kept_and_comes_back() -> None:
    schema = parse_columns("T", ALL)
    assert [column.type for column in schema] == [
        *("string", "long", "double", "boolean", "binary", "timestamp", "date", "decimal(38,18)"),
        *("string", "long", "timestamp"),
    ]
    assert [column.nullable for column in schema] == [False] * 8 + [True] * 3
    assert schema_from_json(schema_to_json(schema)) == schema
    assert schema[9].python == "int | None"


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({}, "T: columns is empty; the key is the first column"),
        (["word"], "T: columns must be a dict such as .* or a class with fields such as a dataclass, got"),
        (object, "T: columns must be a dict such as .* got <class 'object'>$"),
        ({"word": "str"}, "T: column 'word' has the type 'str'; possible are Decimal, bool, bytes, date, datetime,"),
        ({"word": list}, "T: column 'word' has the type list; possible are"),
        ({"word": list[str]}, r"T: column 'word' has the type list\[str\]"),
        ({"word": str | int}, r"T: column 'word' has the type str \| int"),
        ({"word": str | int | None}, r"T: column 'word' has the type str \| int \| None"),
        ({"word": None}, "T: column 'word' has the type None"),
        ({"": str}, "T: a column's name must be a non-empty str, got ''"),
        ({3: str}, "T: a column's name must be a non-empty str, got 3"),
        ({"Word": str, "word": str}, "T: columns 'Word' and 'word' differ in case only"),
        ({"_ID": str}, "T: the column name '_ID' is taken: _id, _time are added by eSault; rename it"),
    ],
)
def test_a_wrong_column_is_named(columns: Any, message: str) -> None:
    with pytest.raises(SinkError, match=message):
        parse_columns("T", columns, ("_id", "_time"))


def test_a_type_of_a_later_version_is_no_schema() -> None:
    with pytest.raises(ValueError, match="unknown column 'a': 'interval'"):
        schema_from_json([["a", "interval", False]])


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Mixed(enum.Enum):
    A = "a"
    B = 2


Name = NewType("Name", str)


class Word(str):
    pass


@dataclasses.dataclass
class Line:
    what: str


@dataclasses.dataclass
class Order:
    id: UUID
    buyer: Name
    word: Word
    where: Path
    state: Literal["open", "closed"] | None
    level: Level
    amount: Annotated[Decimal, "euros"]
    due: date


class Sparse(TypedDict, total=False):
    a: int
    b: str


class Loose(TypedDict):
    a: int
    b: NotRequired[str]


def said(columns: Any, key: Any = None) -> list[tuple[str, str]]:
    return [(column.name, column.python) for column in parse_columns("T", columns, ("_id", "_time"), key)]


def test_annotations_that_stand_for_a_plainer_type_are_columns_of_that() -> None:
    assert said(Order, "id") == [
        ("id", "str"),
        ("buyer", "str"),
        ("word", "str"),
        ("where", "str"),
        ("state", "str | None"),
        ("level", "int"),
        ("amount", "Decimal"),
        ("due", "date"),
    ]
    assert said({"id": UUID, "colour": Colour | None}) == [("id", "str"), ("colour", "str | None")]


@pytest.mark.parametrize("cls", [*CLASSES, Keys], ids=lambda cls: cls.__name__)
def test_the_columns_of_a_class_are_its_fields_behind_that_of_the_key(cls: type) -> None:
    fields = [("count", "int"), ("price", "float | None"), ("colour", "str")]
    assert said(cls) == [("key", "str"), *fields]
    assert said(cls, "word") == [("word", "str"), *fields]
    assert said(cls, {"number": int}) == [("number", "int"), *fields]


def test_a_field_of_the_keys_name_is_the_keys_column_and_the_first() -> None:
    assert said(Keys, "colour") == [("colour", "str"), ("count", "int"), ("price", "float | None")]


def test_what_a_typed_dict_may_lack_may_be_null() -> None:
    assert said(Sparse) == [("key", "str"), ("a", "int | None"), ("b", "str | None")]
    assert said(Loose) == [("key", "str"), ("a", "int"), ("b", "str | None")]


@dataclasses.dataclass
class Nested:
    lines: list[Line]


@dataclasses.dataclass
class Maybe:
    line: Line | None


@dataclasses.dataclass
class Mix:
    mixed: Mixed


@dataclasses.dataclass
class Hidden:
    part: Fraction


@dataclasses.dataclass
class Reserved:
    _ID: int


@pytest.mark.parametrize(
    ("columns", "key", "message"),
    [
        (
            Nested,
            None,
            r"T: field 'lines' of Nested is annotated list\[.*Line\]; possible are .* keep it as JSON in a str",
        ),
        (Maybe, None, r"T: field 'line' of Maybe is annotated .*Line \| None; .* A column holds one value"),
        (Mix, None, "T: field 'mixed' of Mix is annotated Mixed; possible are .*an Enum"),
        (
            Hidden,
            None,
            "T: field 'part' of Hidden is annotated 'Fraction', which cannot be resolved .name 'Fraction' is not defined.; "
            "import or define what it names at the top of the module, not under TYPE_CHECKING",
        ),
        (collections.namedtuple("P", "x"), None, "T: field 'x' of P has no annotation .* such as x: str"),
        (Reserved, None, "T: the column name '_ID' is taken"),
        (Line("x"), None, r"T: columns must be a dict .* got Line\(what='x'\); write Line, the class"),
        (Line, "WHAT", "T: columns 'WHAT' and 'what' differ in case only"),
        (Line, 3, "T: key must name the key's column, as in .* got 3"),
        (Line, {"a": str, "b": str}, "T: key must name the key's column"),
        (Line, {"what": str}, "T: key=.* gives a type to 'what', a field of Line that has one; write key='what'"),
        (Line, {"id": list}, "T: column 'id' has the type list; possible are"),
        (Line, "", "T: a column's name must be a non-empty str, got ''"),
        (
            {"word": str},
            "word",
            "T: key='word' goes with a class; in columns={...} the key's is the first: leave key out",
        ),
    ],
)
def test_a_wrong_field_or_key_is_named(columns: Any, key: Any, message: str) -> None:
    with pytest.raises(SinkError, match=message):
        parse_columns("T", columns, ("_id", "_time"), key)
