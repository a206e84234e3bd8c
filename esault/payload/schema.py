"""Descriptions of classes, kept beside state, and state of an older version of the code read as what the code has today.

While a run lives all its processes have the same code. A checkpoint may be older than the code that goes on from it: then a
record has fields that its class has not, or lacks some. Added ones take the default that the class gives them; dropped ones are left
out. Both are counted, for a renamed attribute looks just like a dropped and an added one, and its user must hear of it.

It is one module of over 300 lines: describing a class and reading by a description are two sides of one format.
"""

from __future__ import annotations

import dataclasses
import dis
import functools
import io
import pickle
import types
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar

from esault.errors import FrameError
from esault.payload.class_names import find, is_own
from esault.payload.codec import Codec
from esault.payload.record import fields_of_model

__all__ = ["Evolution", "Schema", "describe", "describe_all", "mentioned"]

#: "module:name" of a class -> what its objects may have; "" stands for the class of the unit's own objects
Schema = Mapping[str, tuple[str, ...]]

_PICKLED = 0xC1
#: the byte behind it where it is no pickle, see `codec`
_WITH_LISTS = b"L"
_GENERATED = ("slots_setstate", "_dataclass_setstate")


# what classes have today ------------------------------------------------------------------------------


def fields_of(cls: type) -> tuple[str, ...] | None:
    """The fields of a record's class, in their order; None for a class whose objects have whatever its code gives them."""
    if dataclasses.is_dataclass(cls):
        return tuple(field.name for field in dataclasses.fields(cls))
    attrs = getattr(cls, "__attrs_attrs__", None)
    if attrs is not None:
        return tuple(attribute.name for attribute in attrs)
    struct = getattr(cls, "__struct_fields__", None)
    if struct is not None:
        return tuple(struct)
    model = fields_of_model(cls)
    if model is not None:
        return tuple(model)
    if issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple):
        named: Any = cls
        return tuple(named._fields)
    return None


def mentioned(cls: type) -> set[str]:
    """All names that the code of a class and of its bases knows: what none of them mentions, none of them uses."""
    found: set[str] = set()
    for base in cls.__mro__[:-1]:
        if base.__module__.partition(".")[0] in ("esault", "typing", "abc"):
            continue
        found.update(vars(base), vars(base).get("__annotations__", ()))
        slots = vars(base).get("__slots__", ())
        found.update((slots,) if isinstance(slots, str) else slots)
        for value in vars(base).values():
            for code in _codes(value):
                _names(code, found)
    return found


def _codes(value: Any) -> list[types.CodeType]:
    if isinstance(value, property):
        return [code for each in (value.fget, value.fset, value.fdel) for code in _codes(each)]
    value = getattr(value, "func", value)  # of a cached property
    value = getattr(value, "__func__", value)
    code = getattr(value, "__code__", None)
    return [code] if isinstance(code, types.CodeType) else []


def _names(code: types.CodeType, found: set[str]) -> None:
    found.update(code.co_names)
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            _names(each, found)
        elif isinstance(each, str) and each.isidentifier():  # setattr(self, "total", ...)
            found.add(each)


#: what Python itself notes in a class while it is used: by the first pickle of an object, by who asks for annotations
_NOTED = frozenset({"__slotnames__", "__annotations__", "__annotations_cache__", "__annotate_func__"})


#: what in a record's class, or in a base of it, has a say in how its objects are written and read
_SAYS = ("__slots__", "__getstate__", "__setstate__", "__reduce__", "__reduce_ex__", "__getnewargs__")


@functools.lru_cache(maxsize=1024)
def describe(cls: type) -> tuple[str, ...]:
    """Return a description of a class; another description is another version of it."""
    fields = fields_of(cls)
    if fields is None:
        return ("names", *sorted(mentioned(cls) - _NOTED))
    return ("fields", *fields, *_says(cls))


def _says(cls: type) -> Iterator[str]:
    """Yield what has a say in how objects are written and read, with the name of what was made for it by `dataclass` or attrs."""
    for name in _SAYS:
        found = next((vars(base)[name] for base in cls.__mro__[:-1] if name in vars(base)), None)
        if found is not None:
            made = getattr(found, "__name__", name)
            yield name if made == name else f"{name} {made}"


def _is_as(cls: type, said: Iterable[str]) -> bool:
    """Return whether this describes the class of today; older versions noted what Python had noted."""
    return describe(cls) == tuple(name for name in said if name not in _NOTED)


def describe_all(classes: list[type]) -> dict[str, tuple[str, ...]]:
    """Of several classes, by module and name."""
    return {f"{cls.__module__}:{cls.__qualname__}": describe(cls) for cls in classes}


# state of another version -----------------------------------------------------------------------------


class Evolution:
    """Reads state that was written by code with another schema, and counts what it leaves out and what it adds."""

    def __init__(self, schema: Schema | None) -> None:
        """`schema`: as it was written with the state; None: by a version that wrote none, whose lists were read as tuples."""
        self._schema = schema or {}
        self._old_form = schema is None
        self._codec = Codec()
        #: (name of the class, attribute) -> objects that had it; "" stands for the unit's own class
        self.dropped: Counter[tuple[str, str]] = Counter()
        #: the same of what they had not
        self.added: Counter[tuple[str, str]] = Counter()

    def needed(self, own: type | None) -> bool:
        """Return whether anything is another thing than when the state was written; `own` is the class of the unit's objects."""
        if self._old_form:
            return True
        for name, said in self._schema.items():
            if not name:
                if own is not None and not _is_as(own, said):
                    return True
                continue
            try:
                if not _is_as(find(*name.split(":", 1)), said):
                    return True
            except FrameError:
                return True
        return False

    def read(self, state: bytes, owner: Any = None) -> Any:
        """The state as today's classes have it. Raises FrameError."""
        if not state or state[0] != _PICKLED or state[1:2] == _WITH_LISTS:
            return self._codec.unpack(state, owner)
        reader = _Evolving(io.BytesIO(state[1:]), self, owner)
        try:
            return reader.load()
        except FrameError:
            raise
        except Exception as error:
            raise FrameError(
                f"it was written by another version of the code: {type(error).__name__}: {error}"
            ) from error

    def attributes(self, state: Any, fresh: Any) -> Any:
        """The attributes of one of the unit's own objects, without those that its class has not any more."""
        if not isinstance(state, dict) or any(self.is_unchanged("", cls) for cls in type(fresh).__mro__[:2]):
            return state  # what changed is another class
        known = mentioned(type(fresh)) | set(getattr(fresh, "__dict__", ()))
        kept = {}
        for name, value in state.items():
            if (name in known and not _is_covered(fresh, name)) or not self.knew("", name):
                kept[name] = _as_it_was(value, getattr(fresh, name, None)) if self._old_form else value
            else:
                self.dropped["", name] += 1
        known_then = set(self._schema.get("", ("names",))[1:])
        if not self._old_form and known_then:
            self.note_added("", (_set_in_init(type(fresh)) & set(vars(fresh))) - set(state) - known_then)
        return kept

    def note_added(self, cls: str, names: Iterable[str]) -> None:
        """Note what an object of a class has by default, since the code that wrote its state did not know it."""
        for name in names:
            self.added[cls, name] += 1

    def is_unchanged(self, name: str, cls: type) -> bool:
        """Return whether the class is described as it was when the state was written: then nothing of it is left out."""
        said = self._schema.get(name)
        return said is not None and _is_as(cls, said)

    def fields_then(self, cls: str) -> tuple[str, ...] | None:
        """The fields that a record's class had when the state was written."""
        said = self._schema.get(cls)
        return tuple(name for name in said[1:] if not name.startswith(_SAYS)) if said and said[0] == "fields" else None

    def knew(self, cls: str, name: str) -> bool:
        """Return whether the code that wrote the state knew an attribute by its name: those of other names, such as of
        `setattr(self, f"n_{key}", 1)`, are known to no code, and stay. What is not described may have known any."""
        said = self._schema.get(cls)
        return said is None or said[0] != "names" or name in said


def _is_covered(fresh: Any, name: str) -> bool:
    """Return whether a property of the class stands before an attribute that its objects do not have any more."""
    return isinstance(getattr(type(fresh), name, None), property) and name not in vars(fresh)


def _as_it_was(value: Any, fresh: Any) -> Any:
    """A container that lost its type on the way, as the fresh object has it. What is in it stays as it came."""
    kind = type(fresh)
    if fresh is None or type(value) is kind or type(value) not in (tuple, dict, bytes):
        return value
    try:
        if kind in (list, bytearray) or (isinstance(fresh, list) and type(value) is tuple):
            return kind(value)
        if hasattr(fresh, "maxlen") and type(value) is tuple:
            return kind(value, fresh.maxlen)
        if isinstance(fresh, dict) and type(value) is dict:
            fresh = fresh.copy()
            fresh.clear()
            fresh.update(value)
            return fresh
    except Exception:
        return value
    return value


def _is_written_by_us(cls: type, state: Any) -> bool:
    """Return whether a state is that of an object which said nothing of how it is kept, and which `pickles` writes in Python's form
    for slots: a `__setstate__` that its class has today is to get a dict, as from Python."""
    flat = not any(vars(base).get("__slots__") for base in cls.__mro__[:-1])
    silent = getattr(cls, "__getstate__", None) is getattr(object, "__getstate__", None)
    return flat and silent and type(state) is tuple and len(state) == 2 and state[0] is None and type(state[1]) is dict


class _Evolving(pickle._Unpickler):
    """Python's own reader in Python: slow, and it can be told what to do about each object."""

    dispatch: ClassVar[Any] = dict(pickle._Unpickler.dispatch)

    def __init__(self, buffer: io.BytesIO, evolution: Evolution, owner: Any) -> None:
        super().__init__(buffer)
        self._evolution = evolution
        self._owner = owner
        self._names: dict[Any, str] = {}

    def find_class(self, module: str, name: str) -> Any:
        if module == "esault.payload.pickles" and name == "_Owner":
            return lambda: self._owner
        found = find(module, name)
        if isinstance(found, type):
            self._names[found] = f"{module}:{name}"
        return found

    def _by_name(self, cls: type, values: Any) -> dict[str, Any]:
        """Values in the order of the fields, by what those were called."""
        fields = self._evolution.fields_then(self._names.get(cls, "")) or fields_of(cls) or ()
        return dict(zip(fields, values))

    def _today(self, cls: type, values: dict[str, Any]) -> dict[str, Any]:
        """Without the fields that the class has not."""
        fields = fields_of(cls) or ()
        self._drop(cls, [name for name in values if name not in fields])
        self._add(cls, [name for name in fields if name not in values])
        return {name: value for name, value in values.items() if name in fields}

    def _drop(self, cls: type, names: list[str]) -> None:
        for name in names:
            self._evolution.dropped[self._named(cls), name] += 1

    def _named(self, cls: type) -> str:
        return self._names.get(cls, f":{cls.__qualname__}")

    def _add(self, cls: type, names: Iterable[str]) -> None:
        """Note fields that the class had not when the state was written, as far as that is known."""
        before = self._evolution.fields_then(self._names.get(cls, ""))
        if before is not None:
            self._evolution.note_added(self._named(cls), [name for name in names if name not in before])

    def _load_newobj(self) -> None:
        stack: list[Any] = self.stack  # type: ignore[attr-defined]
        args = stack.pop()
        cls = stack.pop()
        if not (args and is_own(cls.__module__)) or issubclass(cls, BaseException):
            stack.append(cls.__new__(cls, *args))
        elif fields_of(cls) is not None:
            stack.append(_made(cls, self._today(cls, self._by_name(cls, args))))  # it was a named tuple
        elif issubclass(cls, tuple) or self._evolution.fields_then(self._names.get(cls, "")) is None:
            stack.append(cls.__new__(cls, *args))
        else:
            thing = cls.__new__(cls)
            stack.append(thing)
            for name, value in self._evolved(cls, self._by_name(cls, args)).items():
                object.__setattr__(thing, name, value)

    dispatch[pickle.NEWOBJ[0]] = _load_newobj

    def _load_reduce(self) -> None:
        stack: list[Any] = self.stack  # type: ignore[attr-defined]
        args = stack.pop()
        call = stack[-1]
        if isinstance(call, type) and hasattr(call, "__struct_fields__"):
            stack[-1] = _made(call, self._today(call, self._by_name(call, args)))
        elif getattr(call, "__module__", "").startswith("msgspec") and len(args) == 2 and isinstance(args[1], dict):
            stack[-1] = _made(args[0], self._today(args[0], args[1]))
        else:
            stack[-1] = call(*args)

    dispatch[pickle.REDUCE[0]] = _load_reduce

    def _load_build(self) -> None:
        stack: list[Any] = self.stack  # type: ignore[attr-defined]
        state = stack[-1]
        thing = stack[-2]
        cls = type(thing)
        setter = getattr(cls, "__setstate__", None)
        generated = setter is None or getattr(setter, "__name__", "") in _GENERATED or fields_of_model(cls) is not None
        if not (generated and is_own(cls.__module__)):
            if is_own(cls.__module__) and _is_written_by_us(cls, state):
                stack[-1] = state[1]
            pickle._Unpickler.load_build(self)  # type: ignore[attr-defined]
            return
        stack.pop()
        model = fields_of_model(cls)
        if model is not None and isinstance(state, dict) and "__dict__" in state:
            self._build_model(cls, model, thing, state)
            return
        if isinstance(state, tuple) and len(state) == 2 and (state[0] is None or isinstance(state[0], dict)):
            values = {**(state[0] or {}), **(state[1] or {})}
        elif isinstance(state, dict):
            values = dict(state)
        else:
            values = self._by_name(cls, state)
        for name, value in self._evolved(cls, values).items():
            object.__setattr__(thing, name, value)

    dispatch[pickle.BUILD[0]] = _load_build

    def _build_model(self, cls: Any, fields: Mapping[str, Any], thing: Any, state: dict[str, Any]) -> None:
        before = self._evolution.fields_then(self._names.get(cls, "")) or ()
        values = {name: value for name, value in state["__dict__"].items() if name in fields or name not in before}
        self._drop(cls, [name for name in state["__dict__"] if name not in values])
        self._add(cls, [name for name in fields if name not in values])
        for name, field in fields.items():
            if name not in values:
                if field.is_required():
                    raise _no_default(cls, name)
                values[name] = field.get_default(call_default_factory=True)
        given = state.get("__pydantic_fields_set__") or set()
        thing.__setstate__(
            {**state, "__dict__": values, "__pydantic_fields_set__": {name for name in given if name in values}}
        )

    def _evolved(self, cls: type, values: dict[str, Any]) -> dict[str, Any]:
        fields = fields_of(cls)
        if fields is None:
            if self._evolution.is_unchanged(self._names.get(cls, "?"), cls):
                return values
            then, known = self._names.get(cls, "?"), mentioned(cls)
            fresh = _fresh(cls)
            covered = {name for name in values if fresh is not None and _is_covered(fresh, name)}
            gone = [
                name for name in values if (name not in known or name in covered) and self._evolution.knew(then, name)
            ]
            missing = _set_in_init(cls) - set(values)
            added = {name: getattr(fresh, name) for name in missing if fresh is not None and hasattr(fresh, name)}
            self._evolution.note_added(self._named(cls), added)
        else:
            before = self._evolution.fields_then(self._names.get(cls, "")) or ()
            gone = [name for name in values if name in before and name not in fields]
            added = {}
            for name in fields:
                if name not in values:
                    default = _default(cls, name)
                    if default is not None:
                        added[name] = default()
            self._add(cls, added)
        self._drop(cls, gone)
        return {**{name: value for name, value in values.items() if name not in gone}, **added}


def _no_default(cls: Any, name: str) -> FrameError:
    return FrameError(
        f"field {name!r} of {cls.__qualname__} is new, and what was written before has no value for it; give the field a default"
    )


def _made(cls: type, values: dict[str, Any]) -> Any:
    try:
        return cls(**values)
    except TypeError as error:
        missing = [name for name in fields_of(cls) or () if name not in values]
        raise _no_default(cls, missing[0]) if missing else error from None


def _default(cls: Any, name: str) -> Callable[[], Any] | None:
    """Return the maker of a field that was not written; None for one that need not be there. Raises FrameError."""
    if dataclasses.is_dataclass(cls):
        field = cls.__dataclass_fields__[name]
        if field.default_factory is not dataclasses.MISSING:
            factory: Callable[[], Any] = field.default_factory
            return factory
        if field.default is not dataclasses.MISSING:
            return lambda: field.default
        if not field.init:
            return None
        raise _no_default(cls, name)
    attribute = next(each for each in cls.__attrs_attrs__ if each.name == name)
    default = attribute.default
    if hasattr(default, "factory") and hasattr(default, "takes_self"):
        if default.takes_self:
            raise _no_default(cls, name)
        made: Callable[[], Any] = default.factory
        return made
    if type(default).__name__ == "_Nothing" or repr(default) == "NOTHING":
        if not attribute.init:
            return None
        raise _no_default(cls, name)
    return lambda: default


def _set_in_init(cls: type) -> set[str]:
    """Attributes that `__init__`, or that of a base, sets."""
    found: set[str] = set()
    for base in cls.__mro__[:-1]:
        for code in _codes(vars(base).get("__init__")):
            found.update(step.argval for step in dis.get_instructions(code) if step.opname == "STORE_ATTR")
    return found


def _fresh(cls: type) -> Any:
    try:
        return cls()
    except Exception:
        return None
