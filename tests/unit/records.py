"""One class of fields in each way that there is, with annotations that are text."""

from __future__ import annotations

import dataclasses
import enum
from typing import ClassVar, NamedTuple, TypedDict

import attrs
import msgspec
import pydantic
import pydantic.dataclasses

__all__ = ["CLASSES", "Colour", "Keys", "Open", "Pair"]


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Plain:
    count: int
    price: float | None
    colour: Colour
    SHARED: ClassVar[int] = 7


@dataclasses.dataclass(frozen=True, slots=True)
class Slotted:
    count: int
    price: float | None
    colour: Colour


class Pair(NamedTuple):
    count: int
    price: float | None
    colour: Colour


@attrs.define
class Attrs:
    count: int
    price: float | None
    colour: Colour


class Struct(msgspec.Struct, rename="camel"):
    count: int
    price: float | None
    colour: Colour


class Model(pydantic.BaseModel):
    count: int
    price: float | None = pydantic.Field(alias="cost")
    colour: Colour
    model_config = {"populate_by_name": True}


class Open(pydantic.BaseModel, extra="allow"):
    count: int


@pydantic.dataclasses.dataclass
class Checked:
    count: int
    price: float | None
    colour: Colour


class Keys(TypedDict):
    count: int
    price: float | None
    colour: Colour


#: all whose objects are no plain dicts
CLASSES = (Plain, Slotted, Pair, Attrs, Struct, Model, Checked)
