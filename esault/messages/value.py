"""`value`: frozen dataclasses that are cheap to define, for the hundred kinds of messages that each start defines.

`dataclass(frozen=True)` compiles six functions for each class, two thirds of a millisecond. What they do but for `__init__` can
be said once for all classes.
"""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass
from typing import TYPE_CHECKING, Any

__all__ = ["value"]

if TYPE_CHECKING:
    from dataclasses import dataclass as value
else:

    def value(*, frozen: bool):
        """Return the decorator: as `dataclass(frozen=True)`, for classes whose fields all count where two are compared."""
        assert frozen

        def made(cls: type) -> type:
            dataclass(repr=False, eq=False)(cls)
            for name, shared in _SHARED.items():
                if name not in vars(cls):
                    setattr(cls, name, shared)
            return cls

        return made


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
