"""Records: classes whose objects are a few named fields, and how to read them.

| kind | the class has |
|---|---|
| dataclass, also pydantic's | `__dataclass_fields__` |
| attrs | `__attrs_attrs__` |
| msgspec.Struct | `__struct_fields__` |
| pydantic model | `__pydantic_fields__`, before its version 2.10 `model_fields` |
| NamedTuple, namedtuple | `_fields`, and is a tuple |
| TypedDict | `__required_keys__`; its objects are plain dicts |

None of the libraries is a dependency, and none is loaded by looking.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from esault.value_class import value_class

__all__ = ["Record", "Unresolved", "record_of"]


@value_class(frozen=True)
class Unresolved:
    """In place of an annotation that is text, and names what cannot be found."""

    text: str
    why: str


@dataclass(frozen=True, eq=False)
class Record:
    """One such class."""

    cls: type
    #: of its fields, in their order
    names: tuple[str, ...]
    #: the fields' values of an object, in that order; AttributeError where one was never set
    values: Callable[[Any], tuple[Any, ...]]
    #: names that an object may lack: those of a TypedDict with total=False
    optional: frozenset[str] = frozenset()
    #: an object may have more than its fields: that of a pydantic model with extra="allow"
    open: bool = False

    def items(self, thing: Any) -> dict[str, Any]:
        """Names and values of an object, and what it has beyond its fields. Raises as `values`."""
        found = dict(zip(self.names, self.values(thing)))
        if self.open:
            found.update(thing.__pydantic_extra__ or {})
        return found

    def annotations(self) -> dict[str, Any]:
        """The fields' annotations, resolved where they are text; names without one are left out."""
        try:
            hints = typing.get_type_hints(self.cls, include_extras=True)
        except Exception:  # whatever the text of an annotation raises: each on its own says which one it was
            hints = self._one_by_one()
        for attribute in getattr(self.cls, "__attrs_attrs__", ()):  # attr.ib(type=int)
            if attribute.type is not None:
                hints.setdefault(attribute.name, attribute.type)
        return {name: hints[name] for name in self.names if name in hints}

    def _one_by_one(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for base in reversed(self.cls.__mro__):
            there = vars(sys.modules[base.__module__]) if base.__module__ in sys.modules else {}
            for name, hint in inspect.get_annotations(base).items():
                alone = types.SimpleNamespace(__annotations__={name: hint})
                try:
                    # names of the module before those of the class, as Python does it for the whole
                    found.update(typing.get_type_hints(alone, dict(vars(base)), there, include_extras=True))
                except Exception as error:
                    found[name] = Unresolved(getattr(hint, "__forward_arg__", str(hint)), str(error))
        return found


_known: dict[type, Record | None] = {}


def record_of(cls: type) -> Record | None:
    """Return the reader for objects of this class; None where it is no record. A class is looked at once."""
    try:
        return _known[cls]
    except KeyError:
        found = _known[cls] = _look_at(cls)
        return found


def _look_at(cls: type) -> Record | None:
    if issubclass(cls, enum.Enum):  # it may be a dataclass too, and stands for its value
        return None
    if dataclasses.is_dataclass(cls):
        return _of_attributes(cls, (field.name for field in dataclasses.fields(cls)))
    attributes = getattr(cls, "__attrs_attrs__", None)
    if isinstance(attributes, tuple):
        return _of_attributes(cls, (attribute.name for attribute in attributes))
    names = getattr(cls, "__struct_fields__", None)
    if isinstance(names, tuple):
        return _of_attributes(cls, names)
    model = fields_of_model(cls)
    if model is not None:
        return _of_attributes(cls, model, getattr(cls, "model_config", {}).get("extra") == "allow")
    names = getattr(cls, "_fields", None)
    if issubclass(cls, tuple) and isinstance(names, tuple):
        return Record(cls, names, tuple)
    if issubclass(cls, dict) and hasattr(cls, "__required_keys__"):
        keys = tuple(inspect.get_annotations(cls))
        optional = frozenset(getattr(cls, "__optional_keys__", ()))
        return Record(cls, keys, lambda thing: tuple(map(thing.get, keys)), optional)
    return None


def fields_of_model(cls: type) -> Mapping[str, Any] | None:
    """The fields of a pydantic model by name, in their order; None for any other class."""
    if not hasattr(cls, "__pydantic_validator__"):
        return None
    # Before its version 2.10 pydantic had them by the second name alone.
    fields = getattr(cls, "__pydantic_fields__", None) or getattr(cls, "model_fields", None)
    return fields if isinstance(fields, Mapping) else None


def _of_attributes(cls: type, names: Iterable[str], open: bool = False) -> Record:
    names = tuple(names)
    if len(names) > 1:
        return Record(cls, names, attrgetter(*names), open=open)
    if not names:
        return Record(cls, names, lambda thing: (), open=open)
    only = attrgetter(*names)
    return Record(cls, names, lambda thing: (only(thing),), open=open)
