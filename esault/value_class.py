"""`value_class`: frozen dataclasses that are cheap to define, for the two hundred that each start defines.

`dataclass(frozen=True)` compiles six functions for each class, two thirds of a millisecond: a sixth of what a small run takes from
command to prompt. What five of them do can be said once for all classes. `__init__` is compiled with the first object: a process
makes objects of half of the classes that it imports.
"""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass, fields
from typing import TYPE_CHECKING, Any

__all__ = ["compile_now", "value_class"]

#: classes whose `__init__` the first object will have compiled
_later: set[type] = set()

if TYPE_CHECKING:
    from dataclasses import dataclass as value_class
else:

    def value_class(*, frozen: bool, kw_only: bool = False):
        """Return the decorator: as `dataclass(frozen=True)`, for classes whose fields all count where two are compared."""
        assert frozen

        def made(cls: type) -> type:
            above = [each for each in map(_parameters, cls.__mro__[1:]) if each is not None and each.frozen]
            for each in above:
                each.frozen = False  # the decorator, which is not to make a frozen class, refuses one above
            try:
                dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(cls)
            finally:
                for each in above:
                    each.frozen = True
            _parameters(cls).frozen = True  # dataclasses below are to be frozen, too
            for name, shared in _SHARED.items():
                if name not in vars(cls):
                    setattr(cls, name, shared)
            if "__init__" not in vars(cls):
                _compile_later(cls)
            return cls

        return made


def _parameters(cls: type) -> Any:
    return vars(cls).get("__dataclass_params__")


def _compile_later(cls: type) -> None:
    """Have the first object of the class compile its `__init__`."""

    def first(self: Any, *args: Any, **named: Any) -> None:
        _compile(cls)
        cls.__init__(self, *args, **named)  # type: ignore[misc]

    cls.__init__ = first  # type: ignore[misc]
    _later.add(cls)


def compile_now(*classes: type) -> None:
    """Compile what the first object would: for a process whose children make objects of these classes."""
    for each in classes:
        if each in _later:
            _compile(each)


def _compile(cls: Any) -> None:
    _later.discard(cls)
    body: dict[str, Any] = {"__doc__": cls.__doc__, "__module__": cls.__module__, "__annotations__": {}}
    for each in fields(cls):
        body["__annotations__"][each.name] = each.type
        body[each.name] = each
    if hasattr(cls, "__post_init__"):
        body["__post_init__"] = cls.__post_init__
    same: Any = dataclass(repr=False, eq=False)(type(cls.__name__, (), body))
    made = same.__init__
    made.__qualname__ = f"{cls.__qualname__}.__init__"  # what errors of arguments say
    cls.__init__ = made


def _fields(thing: Any) -> tuple[Any, ...]:
    return tuple([getattr(thing, name) for name in thing.__dataclass_fields__])


def _repr(self: Any) -> str:
    said = [f"{name}={getattr(self, name)!r}" for name in self.__dataclass_fields__]
    return f"{type(self).__qualname__}({', '.join(said)})"


def _eq(self: Any, other: object) -> bool:
    return _fields(self) == _fields(other) if type(other) is type(self) else NotImplemented


def _hash(self: Any) -> int:
    return hash(_fields(self))


def _set(self: Any, name: str, thing: Any) -> None:
    have = self.__dict__  # each control message and piece of a checkpoint comes by here, once for each field
    if name not in self.__dataclass_fields__ or name in have:  # `__init__` sets each once
        raise FrozenInstanceError(f"cannot assign to field {name!r}")
    have[name] = thing


def _delete(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


_SHARED = {"__repr__": _repr, "__eq__": _eq, "__hash__": _hash, "__setattr__": _set, "__delattr__": _delete}
