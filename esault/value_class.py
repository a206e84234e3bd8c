"""`value_class`: frozen dataclasses that are cheap to define, for the two hundred that each start defines.

`dataclass(frozen=True)` looks through a class and compiles six functions for it, two thirds of a millisecond: a sixth of what a small
run takes from command to prompt. What five of them do can be said once for all classes. Fields are looked for when something asks for
them, which is the first object most often: a process makes objects of a third of the classes that it imports. `__init__` is compiled
when there have been some objects: of most classes a process makes a few.
"""

from __future__ import annotations

import os
import threading
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, fields
from itertools import pairwise
from typing import TYPE_CHECKING, Any

__all__ = ["prepare_now", "value_class"]

#: objects of a class until its `__init__` is compiled, which takes as long as it saves with some 200
_FEW = 64
#: classes whose fields something will ask for, and whether all of them are given by name
_unlooked: dict[type, bool] = {}
#: classes whose `__init__` is not compiled
_uncompiled: set[type] = set()
#: Held while a class is looked through, for which its attributes change; and while a process is forked, so that none of them is a half.
_looking = threading.RLock()
os.register_at_fork(before=_looking.acquire, after_in_parent=_looking.release, after_in_child=_looking.release)

if TYPE_CHECKING:
    from dataclasses import dataclass as value_class
else:

    def value_class(*, frozen: bool, kw_only: bool = False):
        """Return the decorator: as `dataclass(frozen=True)`, for classes whose fields all count where two are compared."""
        assert frozen

        def made(cls: type) -> type:
            _unlooked[cls] = kw_only
            for name in _LATER:
                if name not in vars(cls):
                    setattr(cls, name, _Later(cls, name))
            for name, shared in _SHARED.items():
                if name not in vars(cls):
                    setattr(cls, name, shared)
            if "__init__" not in vars(cls):
                _initialize_later(cls)
            return cls

        return made


class _Later:
    """Stands for an attribute that a class has once its fields are known, and takes care that they are."""

    def __init__(self, cls: type, name: str) -> None:
        self._cls, self._name = cls, name

    def __get__(self, thing: Any, cls: type) -> Any:
        _look(self._cls)
        return getattr(self._cls, self._name)


#: what `dataclass` sets, and others look at
_LATER = ("__dataclass_fields__", "__dataclass_params__", "__match_args__")


def _look(cls: type) -> None:
    """Find the fields of a class, if that is still to be done."""
    with _looking:
        kw_only = _unlooked.get(cls)
        if kw_only is None:
            return
        above = [each for each in map(_parameters, cls.__mro__[1:]) if each is not None and each.frozen]
        for each in above:
            each.frozen = False  # the decorator, which is not to make a frozen class, refuses one above
        try:
            dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(cls)
        finally:
            for each in above:
                each.frozen = True
        params: Any = vars(cls)["__dataclass_params__"]
        params.frozen = True  # dataclasses below are to be frozen, too
        if isinstance(vars(cls)["__match_args__"], _Later):
            cls.__match_args__ = tuple(each.name for each in _fields_by_place(cls))  # type: ignore[attr-defined, misc]
        del _unlooked[cls]


def _parameters(cls: type) -> Any:
    if cls in _unlooked:
        _look(cls)
    return vars(cls).get("__dataclass_params__")


def _initialize_later(cls: type) -> None:
    """Have the first object of the class find out what `__init__` has to do."""

    def first(self: Any, *args: Any, **named: Any) -> None:
        _prepare(cls)
        cls.__init__(self, *args, **named)  # type: ignore[misc]

    cls.__init__ = first  # type: ignore[misc]
    _uncompiled.add(cls)


def prepare_now(*classes: type) -> None:
    """Find out what the first object would: for a process whose children make some objects of these classes each."""
    for each in classes:
        if each in _uncompiled:
            _prepare(each)


def _prepare(cls: Any) -> None:
    """Put an `__init__` in place that does what one of a dataclass does, for a few objects."""
    taken = [each for each in fields(cls) if each.init]
    places = _fields_by_place(cls)
    if any(_is_needed(after) and not _is_needed(each) for each, after in pairwise(places)):
        _compile(cls)  # says what is wrong with it
        return
    by_place, names = [each.name for each in places], {each.name for each in taken}
    needed = {each.name for each in taken if _is_needed(each)}
    steps = [
        (each.name, each.default, None if each.default_factory is MISSING else each.default_factory)
        for each in fields(cls)
        if each.init or each.default_factory is not MISSING
    ]
    ends = hasattr(cls, "__post_init__")
    left = _FEW

    def few(self: Any, /, *args: Any, **named: Any) -> None:
        nonlocal left
        left -= 1
        given = {**dict(zip(by_place, args)), **named}
        right = len(given) == len(args) + len(named) and needed <= given.keys() <= names
        if left < 0 or not right:
            _compile(cls)  # also to say what is wrong with the arguments
            cls.__init__(self, *args, **named)
            return
        for name, default, factory in steps:
            setattr(self, name, given[name] if name in given else default if factory is None else factory())
        if ends:
            self.__post_init__()

    few.__qualname__ = f"{cls.__qualname__}.__init__"
    cls.__init__ = few


def _fields_by_place(cls: Any) -> list[Field[Any]]:
    return [each for each in fields(cls) if each.init and not each.kw_only]


def _is_needed(each: Any) -> bool:
    return each.default is MISSING and each.default_factory is MISSING


def _compile(cls: Any) -> None:
    _uncompiled.discard(cls)
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
