"""Pickles that name nothing but data: what says of a value, or of a state, all that Python knows of it.

MessagePack has one word for lists and tuples, none for a dataclass, and none for the same object in two places. Pickle's protocol 5
says all of that, in C. What makes pickle dangerous is that it may name any function; here writer and reader ask
`class_names` about each name, so that bytes of any origin build data, or nothing.

It is one module of over 300 lines: the writer and the reader of one format stand side by side.
"""

from __future__ import annotations

import copyreg
import enum
import io
import logging
import pickle
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from esault.errors import FrameError, PayloadError
from esault.payload import numpy_pickles, rebuild
from esault.payload.attributes import get_attributes
from esault.payload.class_names import check, find, is_own

__all__ = [
    "NotPlain",
    "OwnerShown",
    "PlainWriter",
    "Writer",
    "attributes_only",
    "may_set",
    "read",
    "read_each",
    "read_shared",
]

PROTOCOL = 5
#: bytes after which a pickler is better made anew than emptied
_SMALL = 1024
_ARRAY = numpy_pickles.array
#: what an action gives where pickle's own way is right
_BY_ITSELF = NotImplemented
#: class -> how its objects are written
_actions: dict[type, Callable[[Any], Any]] = {}
_may_set: dict[type, bool] = {}
_MOST_KNOWN = 4096


class NotPlain(Exception):
    """There is an object among what should be Python's own containers and scalars."""


class _Owner:
    """Stands in bytes for the object whose state they are."""


class OwnerShown:
    """Stands for the object whose state is looked at, and for what is bound to it: there is no such object then."""

    def __init__(self, text: str = "self") -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text

    def method(self, name: str) -> OwnerShown:
        """Return what stands for a method of it."""
        return OwnerShown(f"{self._text}.{name}")


class Writer(pickle.Pickler):
    """Writes one value after the other, each by itself: what stands twice in a value is one object there, and so is its reader's.

    Keeps a buffer between calls: one writer for each thread. Calls the user's own code where classes have some for it.
    """

    def __init__(self) -> None:
        self._buffer = io.BytesIO()
        super().__init__(self._buffer, PROTOCOL)
        #: the object whose state is written; it may stand in it, as in a bound method
        self.owner: Any = None
        #: its attributes
        self._attributes: dict[str, Any] = {}

    def write(self, thing: Any, owner: Any = None) -> bytes:
        """As bytes. Raises whatever the user's code raises, PayloadError, TypeError or pickle.PicklingError for what cannot travel."""
        buffer = self._buffer
        self.owner = owner
        if owner is not None and type(thing) is dict:
            self._attributes = thing
        try:
            self.dump(thing)
            return buffer.getvalue()
        finally:
            self.owner, self._attributes = None, {}
            if buffer.tell() > _SMALL:
                self._forget()
            else:
                self.clear_memo()
                buffer.seek(0)
                buffer.truncate()

    def _forget(self) -> None:
        buffer = self._buffer
        if buffer.tell() > _SMALL:  # what remembers never shrinks, and is wiped as a whole
            super().__init__(buffer, PROTOCOL)
        else:
            self.clear_memo()
        buffer.seek(0)
        buffer.truncate()

    def write_each(self, things: Any) -> bytes:
        """One pickle behind the other."""
        buffer, dump, clear = self._buffer, self.dump, self.clear_memo
        try:
            for thing in things:
                dump(thing)
                clear()
            return buffer.getvalue()
        finally:
            self._forget()

    def reducer_override(self, thing: Any) -> Any:
        """Return the way to write what is no container or scalar of Python's own; called by pickle."""
        if thing is self.owner:
            return _Owner, ()
        kind = type(thing)
        action = _actions.get(kind)
        if action is None:
            action = _action(kind)
        if action is _ARRAY and self._attributes and thing.base is not None:
            return numpy_pickles.view(thing, self._attributes) or action(thing)
        return action(thing)


class PlainWriter(pickle.Pickler):
    """Writes trees of Python's own containers and scalars, a third faster than MessagePack. Raises NotPlain for anything else.

    Nothing is remembered but texts that are named: what else stands in two places is written twice. So rows of a column share nothing
    that could be changed when they are read.
    """

    def __init__(self) -> None:
        self._buffer = io.BytesIO()
        self._begin()

    def _begin(self) -> None:
        super().__init__(self._buffer, PROTOCOL)
        self.fast = True

    def write(self, thing: Any, head: bytes, shared: Sequence[str] = ()) -> bytes:
        """As bytes behind `head`. Raises NotPlain, ValueError or RecursionError for what is nested too deeply or contains itself.

        `shared` are texts that are written once, before it, for `read_shared`; as objects, and not by what they say.
        """
        try:
            return self._write(thing, head, shared)
        except (KeyError, ValueError, RecursionError):
            # Python counts how deep it is, and never counts a frozenset down again: from the 50th one on it looks for containers
            # that it has not noted. It begins to count anew where it is made anew.
            self._begin()
        try:
            return self._write(thing, head, shared)
        except KeyError:  # so many are in this one thing
            self._begin()
            raise NotPlain from None
        except (ValueError, RecursionError):
            self._begin()
            raise

    def _write(self, thing: Any, head: bytes, shared: Sequence[str]) -> bytes:
        buffer = self._buffer
        buffer.write(head)  # here, for to put it before what is written would copy that
        try:
            if shared:
                # It looks up what it has remembered, whether or not it is to remember more.
                self.fast = False
                self.dump(shared)
                self.fast = True
            self.dump(thing)
            return buffer.getvalue()
        finally:
            self.fast = True
            if shared:
                self.clear_memo()
            buffer.seek(0)
            buffer.truncate()

    def reducer_override(self, thing: Any) -> Any:
        """Called by pickle for what is not plain."""
        raise NotPlain


def read(data: bytes | bytearray | memoryview, start: int = 0, owner: Any = None) -> Any:
    """Return what a Writer wrote, from this byte on. Raises FrameError, or what the user's own classes raise."""
    buffer = io.BytesIO(data)
    buffer.seek(start)
    return (_Reader(buffer) if owner is None else _StateReader(buffer, owner)).load()


def read_shared(data: bytes | bytearray | memoryview, start: int = 0) -> Any:
    """Return what a PlainWriter wrote behind texts that it shares, from the byte on where these begin. Raises FrameError."""
    buffer = io.BytesIO(data)
    buffer.seek(start)
    reader = _Reader(buffer)
    reader.load()
    return reader.load()


def read_each(data: bytes | bytearray | memoryview, start: int, count: int) -> list[Any]:
    """So many values, one behind the other."""
    buffer = io.BytesIO(data)
    buffer.seek(start)
    # A reader of its own for each: one that has read goes on counting what it remembers.
    return [_Reader(buffer).load() for _ in range(count)]


class _Reader(pickle.Unpickler):
    #: what is named; called by pickle
    find_class = staticmethod(find)


class _StateReader(pickle.Unpickler):
    """The same for the state of an object, in which it may stand itself."""

    def __init__(self, buffer: io.BytesIO, owner: Any) -> None:
        super().__init__(buffer)
        self._owner = owner

    def find_class(self, module: str, name: str) -> Any:
        """Return what is named; called by pickle."""
        if module == __name__ and name == "_Owner":
            return lambda: self._owner
        if type(self._owner) is OwnerShown and (module, name) == (rebuild.__name__, "method"):
            return lambda of, named: of.method(named) if type(of) is OwnerShown else rebuild.method(of, named)
        return find(module, name)


# how objects are written ------------------------------------------------------------------------------


def _action(kind: type) -> Callable[[Any], Any]:
    if len(_actions) >= _MOST_KNOWN:
        _actions.clear()
    action = _actions[kind] = _choose(kind)
    return action


def _choose(kind: type) -> Callable[[Any], Any]:
    if issubclass(kind, type):
        return _class
    if kind in (FunctionType, BuiltinFunctionType) or kind.__name__ == "cython_function_or_method":
        return _function
    if kind is MethodType:
        return _method
    if issubclass(kind, enum.Enum):
        if issubclass(kind, enum.Flag) or all(map(_is_equal_elsewhere, (each._value_ for each in kind))):
            return lambda thing: (kind, (thing._value_,))
        return lambda thing: (rebuild.member, (kind, thing._name_))
    module = str(kind.__module__).partition(".")[0]
    if kind is object:
        return _refused(
            "a bare object() is nothing but itself, and another one elsewhere; use None, or a member of an Enum"
        )
    if kind is ModuleType:
        return _refused("a module cannot travel; import it where it is used")
    if module == "zoneinfo":
        return _zone
    if kind in (logging.Logger, logging.RootLogger):
        return _logger
    if module == "numpy":
        numpy = sys.modules["numpy"]
        if kind is numpy.ndarray:
            return numpy_pickles.array
        if issubclass(kind, numpy.generic):
            return numpy_pickles.scalar
        if issubclass(kind, numpy.dtype):
            return numpy_pickles.dtype
        if kind is numpy.ufunc or kind is type(numpy.mean):
            return _function
    if module == "msgspec" and kind.__name__ == "UnsetType":
        return lambda thing: (rebuild.unset, ())
    if module == "pyarrow":
        return _arrow
    if module == "itertools":
        return _iterator
    if module == "typing":  # it says names, which pickle writes without a question
        return _said
    if kind.__reduce__ is Counter.__reduce__:
        return _counter
    if kind is not defaultdict and kind.__reduce__ is defaultdict.__reduce__:
        return _default_dict
    if module != "builtins" and is_own(kind.__module__):
        if _is_plain_error(kind):
            return _error
        own = kind.__reduce_ex__ is not object.__reduce_ex__ or kind.__reduce__ is not object.__reduce__
        if own or kind in copyreg.dispatch_table:
            return _said
        if _is_plain(kind):
            return _plain_slots if may_set(kind) else _plain_dict
    return lambda thing: _BY_ITSELF


def _is_equal_elsewhere(value: Any) -> bool:
    """Return whether the value of a member of an Enum is sure to find that again: a partial is equal to itself alone."""
    kind = type(value)
    if kind in (tuple, list, frozenset):
        return all(map(_is_equal_elsewhere, value))
    return kind in (str, bytes, int, bool, type(None)) or (kind is float and value == value)


def attributes_only(kind: type) -> bool:
    """Return whether a class is the user's own, and its objects are written as their attributes and nothing else."""
    return (_actions.get(kind) or _action(kind)) in (_plain_slots, _plain_dict)


def _is_plain(kind: type) -> bool:
    """Return whether the objects of a class are their attributes, and nothing of the user's has a say in how they are kept."""
    if any(hasattr(kind, name) for name in ("__getnewargs__", "__getnewargs_ex__", "__setstate__")):
        return False
    if getattr(kind, "__getstate__", None) is not getattr(object, "__getstate__", None):
        return False
    flat = all(
        type(vars(base).get("__slots__", ())) is tuple and not vars(base).get("__slots__") for base in kind.__mro__[:-1]
    )
    return flat and kind.__dictoffset__ != 0 and kind.__basicsize__ <= _PlainObject.__basicsize__


class _PlainObject:
    """An object with attributes, and nothing beside them."""


def may_set(kind: type) -> bool:
    """Return whether setting its attributes one by one is as good as setting all of its dict."""
    known = _may_set.get(kind)
    if known is None:
        if len(_may_set) >= _MOST_KNOWN:
            _may_set.clear()
        known = _may_set[kind] = _find_whether(kind)
    return known


def _find_whether(kind: type) -> bool:
    setter: Any = kind.__setattr__
    if setter is not object.__setattr__:
        return False
    return not any(
        hasattr(type(value), "__set__")
        for base in kind.__mro__[:-1]
        for name, value in vars(base).items()
        if name[:2] != "__"
    )


def _plain_slots(thing: Any) -> Any:
    # Set one by one, attributes stay where access to them is quick: see `attributes`.
    attributes = get_attributes(thing)
    return copyreg.__newobj__, (type(thing),), (None, attributes) if attributes else None  # type: ignore[attr-defined]


def _plain_dict(thing: Any) -> Any:
    return copyreg.__newobj__, (type(thing),), get_attributes(thing) or None  # type: ignore[attr-defined]


def _state(thing: Any) -> Any:
    say = getattr(thing, "__getstate__", None)
    return vars(thing) or None if say is None else say()


def _counter(thing: Any) -> Any:
    # Its own word names its items before it is there: it could not stand in itself, and attributes of a subclass would be lost.
    return copyreg.__newobj__, (type(thing),), _state(thing), None, iter(thing.items())  # type: ignore[attr-defined]


def _default_dict(thing: Any) -> Any:
    return (
        type(thing),
        (thing.default_factory,),
        _state(thing),
        None,
        iter(thing.items()),
    )  # its own word, with attributes


def _is_plain_error(kind: type) -> bool:
    """Return whether it is an exception which is its arguments and attributes, and says nothing of how it is kept."""
    if not issubclass(kind, BaseException) or kind in copyreg.dispatch_table:
        return False
    base = next(base for base in kind.__mro__ if base.__module__ == "builtins")
    said = kind.__reduce__ is not BaseException.__reduce__ or kind.__reduce_ex__ is not object.__reduce_ex__
    return not said and base.__basicsize__ == BaseException.__basicsize__


def _error(thing: Any) -> Any:
    # Python's own way calls the constructor with what the error keeps, which need not be what the constructor takes.
    return copyreg.__newobj__, (type(thing), *thing.args), thing.__dict__ or None  # type: ignore[attr-defined]


def _said(thing: Any) -> Any:
    reduce = copyreg.dispatch_table.get(type(thing))
    said = thing.__reduce_ex__(PROTOCOL) if reduce is None else reduce(thing)
    if type(said) is str:  # the name of a singleton
        try:
            found = find(getattr(thing, "__module__", None) or type(thing).__module__, said)
        except FrameError as error:
            raise PayloadError(f"it says that it is {said!r} of its module, and cannot be found: {error}") from None
        if found is not thing:
            raise PayloadError(f"it says that it is {said!r} of its module, which is another object")
    return said


def _class(thing: Any) -> Any:
    if thing is type(None):
        return rebuild.none_type, ()
    if thing is not _Owner:
        check(thing)
    return _BY_ITSELF


def _function(thing: Any) -> Any:
    check(thing)
    return _BY_ITSELF


def _method(thing: Any) -> Any:
    owner, name = thing.__self__, thing.__func__.__name__
    try:
        found: Any = rebuild.method(owner, name)
        same = found.__func__ is thing.__func__
    except FrameError:
        same = False
    if not same:
        raise PayloadError(
            f"the method {name} of {type(owner).__qualname__} cannot travel; use a name that stands for it"
        )
    return rebuild.method, (owner, name)


def _refused(reason: str) -> Callable[[Any], Any]:
    def refuse(thing: Any) -> Any:
        raise PayloadError(reason)

    return refuse


def _logger(thing: Any) -> Any:
    return rebuild.logger, (None if type(thing) is logging.RootLogger else thing.name,)


def _zone(thing: Any) -> Any:
    if getattr(thing, "key", None) is None:
        raise PayloadError("a time zone without a name cannot travel; make it by ZoneInfo(name)")
    return rebuild.zone, (thing.key,)


def _iterator(thing: Any) -> Any:
    if type(thing).__name__ != "count":
        raise PayloadError("an iterator cannot travel; keep the list that it goes over, and how far it is")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            return thing.__reduce__()
        except TypeError:  # Python 3.14 on: what it says of itself is all there is
            from ast import literal_eval

            return type(thing), literal_eval(f"({repr(thing)[6:-1]},)")


def _arrow(thing: Any) -> Any:
    try:
        said = rebuild.arrow_of(thing)
    except Exception as error:
        raise PayloadError(f"{type(thing).__name__} of Arrow cannot travel: {error}") from error
    if said is None:
        raise PayloadError(f"{type(thing).__name__} of Arrow cannot travel; use a Table, an Array or a Scalar")
    return rebuild.arrow, said
