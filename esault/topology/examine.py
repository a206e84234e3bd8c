"""The user's classes, looked at before anything runs: mistakes that would only show, or never show, at runtime.

It is one module of over 300 lines: bolts, spouts and sinks are looked at by the same functions, and refused in the same words.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, MutableSequence, MutableSet
from types import CodeType, FunctionType
from typing import Any, Generic, TypeVar

from esault.errors import TopologyError
from esault.topology.bolt import BatchBolt, Bolt, takes_columns
from esault.topology.function import accepts, is_async, is_generator
from esault.topology.method_code import changed_by_methods, codes_of_methods, kept_parameters, of_itself
from esault.topology.sink import Sink
from esault.topology.split_source import SplitSource
from esault.topology.spout import Spout

__all__ = [
    "check_emits",
    "examine_bolt_class",
    "examine_bound",
    "examine_sink",
    "examine_spout",
    "is_asynchronous",
    "returned_instead_of_emitted",
]


T = TypeVar("T")

_MUTABLE = (list, dict, set, bytearray, deque, array, MutableSequence, MutableMapping, MutableSet)

# What a hook is called with, besides self.
_BOLT_HOOKS: Mapping[str, tuple[str, ...]] = {
    "process": ("key", "value"),
    "process_stream": ("stream", "key", "value"),
    "process_broadcast": ("key", "value"),
    "process_broadcast_stream": ("stream", "key", "value"),
    "open": ("context",),
    "tick": ("now",),
    "on_timer": ("name", "at"),
    "finish": (),
    "close": (),
}
_BATCH_BOLT_HOOKS: Mapping[str, tuple[str, ...]] = {
    "process_batch": ("rows",),
    "process_batch_stream": ("stream", "rows"),
    "process_columns": ("keys", "values"),
    "process_columns_stream": ("stream", "keys", "values"),
    "open": ("context",),
    "tick": ("now",),
    "finish": (),
    "close": (),
}
#: hooks of a Bolt that no BatchBolt is called by, and what does the same there
_NOT_OF_BATCHES: Mapping[str, str] = {
    "open_shared": "it has one object in each sub-unit, so write open(self, context), and keep what it opens in an attribute",
    "close_shared": "it has one object in each sub-unit, so write close(self)",
    "process_broadcast": "what all sub-units share is broadcast to a Bolt",
    "process_broadcast_stream": "what all sub-units share is broadcast to a Bolt",
}
_SPOUT_HOOKS: Mapping[str, tuple[str, ...]] = {
    "check": (),
    "open": ("context",),
    "read": ("limit",),
    "position": (),
    "seek": ("position",),
    "commit": ("position",),
    "due": (),
    "next_due": (),
    "held_back": (),
    "lag": (),
    "progress": (),
    "without_pace": (),
    "close": (),
}
_SPLIT_HOOKS: Mapping[str, tuple[str, ...]] = {
    "splits": (),
    "open_split": ("id", "position"),
    "open_added_split": ("id",),
}
_SINK_HOOKS: Mapping[str, tuple[str, ...]] = {
    "check": (),
    "begin": ("run",),
    "end": ("ok",),
    "open": ("context",),
    "write": ("rows",),
    "write_columns": ("keys", "values", "time", "ids"),
    "prepare": ("epoch",),
    "commit": ("epoch", "handle"),
    "commit_all": ("epoch", "handles"),
    "close": (),
    "written_paths": (),
    "destination": (),
    "collected_rows": ("run_dir", "name"),
}

#: those that may be `async def`
_ASYNC_SINK_HOOKS = frozenset(("begin", "end", "open", "write", "prepare", "commit", "commit_all", "close"))


def examine_bolt_class(cls: type, unit: str) -> bool:
    """Raise TopologyError for what a bolt's class must not do; True when it is a BatchBolt.

    Called for classes (and partials of them) when the topology is built; the runtime calls it with the class of
    the first object that any other factory makes.
    """
    if issubclass(cls, (Spout, Sink)):
        raise TopologyError(
            f"unit {unit!r}: {cls.__name__} is a {_base_of(cls)}; a bolt derives from Bolt or BatchBolt"
        )
    if not issubclass(cls, (Bolt, BatchBolt)):
        raise TopologyError(f"unit {unit!r}: {cls.__name__} is no bolt; derive it from Bolt or BatchBolt")
    if issubclass(cls, Bolt) and issubclass(cls, BatchBolt):
        raise TopologyError(f"unit {unit!r}: {cls.__name__} derives from Bolt and from BatchBolt; choose one")
    batch = issubclass(cls, BatchBolt)
    if batch:
        if not takes_columns(cls):
            _examine_work(cls, unit, BatchBolt, "process_batch", "process_batch_stream", other="process")
        for name, remedy in _NOT_OF_BATCHES.items():
            if hasattr(cls, name):
                raise TopologyError(
                    f"unit {unit!r}: {cls.__name__} defines {name}, which a BatchBolt is not called by: {remedy}"
                )
    else:
        _examine_work(cls, unit, Bolt, "process", "process_stream", other="process_batch")
    if inspect.isabstract(cls):
        missing = ", ".join(sorted(getattr(cls, "__abstractmethods__", ())))
        raise TopologyError(f"unit {unit!r}: {cls.__name__} is abstract: {missing} must be defined first")
    _examine_hooks(f"unit {unit!r}", cls, _BATCH_BOLT_HOOKS if batch else _BOLT_HOOKS)
    _examine_reserved(
        cls,
        unit,
        ("emit_batch", "emit_columns", "keyed", "context")
        if batch
        else ("emit", "key", "window", "context", "broadcast_state"),
    )
    if getattr(cls, "on_timer", None) is not Bolt.on_timer:
        _examine_reserved(cls, unit, ("timer", "cancel_timer"))
    _examine_attributes(cls, unit)
    if not batch:
        _examine_defaults(cls, unit)
    check_emits(cls, unit, BatchBolt if batch else Bolt)
    _examine_returns(cls, unit, _BATCH_BOLT_HOOKS if batch else _BOLT_HOOKS)
    if not batch:
        _examine_slots(cls, unit)
    return batch


def _examine_own_names(where: str, thing: object, hooks: Mapping[str, tuple[str, ...]]) -> None:
    """Raise TopologyError for an attribute that stands where the engine calls a hook."""
    for name, value in getattr(thing, "__dict__", {}).items():
        if name in hooks and not callable(value):
            raise TopologyError(
                f"{where}: {type(thing).__name__} sets self.{name}, and {name}({', '.join(hooks[name])}) is called by the engine; use another name"
            )


def examine_spout(spout: object, unit: str) -> Spout[Any, Any]:
    """`spout`, if it is an object that can be read; else TopologyError."""
    where = f"unit {unit!r}"
    spout = _object_of(Spout, spout, where, f"t.spout({unit!r}, ")
    cls = type(spout)
    if cls.read is Spout.read:
        raise TopologyError(f"{where}: {cls.__name__} does not define read(self, limit), which gives the tuples")
    _examine_hooks(where, cls, _SPOUT_HOOKS)
    _examine_own_names(where, spout, _SPOUT_HOOKS)
    if isinstance(spout, SplitSource):
        _examine_hooks(where, cls, _SPLIT_HOOKS)
        spout.examine(where)
        return spout
    defines_position, defines_seek = cls.position is not Spout.position, cls.seek is not Spout.seek
    if not spout.seekable:
        if not defines_position or cls.commit is Spout.commit:
            raise TopologyError(
                f"{where}: {cls.__name__} says seekable = False, of a source that is told what it may forget: define position(self) "
                "and commit(self, position), or leave it out"
            )
    elif defines_position != defines_seek:
        has, lacks = ("position", "seek(self, position)") if defines_position else ("seek", "position(self)")
        raise TopologyError(
            f"{where}: {cls.__name__} defines {has} without {lacks}; going on after a restart takes both, or neither"
            + ("; a queue, which is only told what it may forget, says seekable = False" if defines_position else "")
        )
    return spout


def examine_sink(sink: object, name: str) -> Sink:
    """`sink`, if it is an object that can be written to; else TopologyError."""
    where = f"sink {name!r}"
    sink = _object_of(Sink, sink, where, f".sink({name!r}, ")
    cls = type(sink)
    if cls.write is Sink.write and cls.write_columns is Sink.write_columns:
        raise TopologyError(f"{where}: {cls.__name__} defines neither write(self, rows) nor write_columns(...)")
    _examine_hooks(where, cls, _SINK_HOOKS)
    _examine_own_names(where, sink, _SINK_HOOKS)
    return sink


def _object_of(base: type[T], thing: object, where: str, call: str) -> T:
    """`thing`, if it is an object of `base`, not a class and nothing else that a topology is made of; else TopologyError."""
    noun = base.__name__.lower()
    if isinstance(thing, type):
        raise TopologyError(
            f"{where}: a {noun} is passed as an object, not as a class; write {call}{thing.__name__}(...))"
        )
    if isinstance(thing, base):
        return thing
    if isinstance(thing, (Bolt, BatchBolt, Spout, Sink)):
        raise TopologyError(f"{where}: {type(thing).__name__} is a {_base_of(type(thing))}, not a {noun}")
    raise TopologyError(
        f"{where}: {thing!r} ({type(thing).__name__}) is no {noun}; pass an object of a class derived from {base.__name__}"
        + _in_place_of(base, thing)
    )


def _in_place_of(base: type, thing: object) -> str:
    """Return what does with a list or a function what its user meant by it."""
    if base is Spout and (isinstance(thing, (list, tuple)) or inspect.isfunction(thing)):
        given = f"{thing.__name__}" if inspect.isfunction(thing) else "[...]"
        return f"; a list of (key, value) pairs, or a function that returns or yields them, is one by esault.sources: Items({given})"
    if base is Sink and callable(thing):
        return f"; what is to be called for each value is a step: .map({getattr(thing, '__name__', 'function')})"
    return ""


def _base_of(cls: type) -> str:
    for base, noun in ((Spout, "spout"), (Sink, "sink"), (Bolt, "bolt"), (BatchBolt, "bolt")):
        if issubclass(cls, base):
            return noun
    return cls.__name__


def _examine_work(cls: type, unit: str, base: type, single: str, several: str, *, other: str) -> None:
    """One of the hooks that take tuples must be there."""
    if getattr(cls, single) is not getattr(base, single) or getattr(cls, several) is not getattr(base, several):
        return
    takes = ", ".join(("self", *{**_BOLT_HOOKS, **_BATCH_BOLT_HOOKS}[single]))
    message = f"unit {unit!r}: {cls.__name__} defines neither {single}({takes}) nor {several}"
    if hasattr(cls, other):
        message += f"; {other} is a hook of {'Bolt' if base is BatchBolt else 'BatchBolt'}: derive it from that"
    raise TopologyError(message)


def _examine_hooks(where: str, cls: type, hooks: Mapping[str, tuple[str, ...]]) -> None:
    """Hooks are plain methods that take what they are called with."""
    for name, takes in hooks.items():
        owner = next(base for base in cls.__mro__ if name in vars(base))
        hook = vars(owner)[name]
        if owner.__module__.startswith("esault.topology."):
            continue
        called = f"{cls.__name__}.{name}"
        if not callable(getattr(cls, name)):
            raise TopologyError(f"{where}: {called} is {hook!r}; it is a hook that the engine calls: define a method")
        function = hook.__func__ if isinstance(hook, (staticmethod, classmethod)) else hook
        if is_generator(function) or inspect.isasyncgenfunction(function):
            if issubclass(cls, (Spout, Sink)):
                remedy = "return a list" if name == "read" else "write a plain def"
            else:
                remedy = "use self.emit_batch(rows)" if issubclass(cls, BatchBolt) else "use self.emit(key, value)"
            raise TopologyError(f"{where}: {called} yields, so that calling it does nothing; {remedy} instead")
        if (
            is_async(function)
            and not is_asynchronous(cls)
            and not (issubclass(cls, Sink) and name in _ASYNC_SINK_HOOKS)
        ):
            raise TopologyError(f"{where}: {called} is async, which {_why_not(cls)}")
        bound = isinstance(hook, (staticmethod, classmethod))
        if not accepts(getattr(cls, name), len(takes) + (not bound)):
            raise TopologyError(f"{where}: {called} must take ({', '.join(('self', *takes))})")


def is_asynchronous(cls: type) -> bool:
    """Return whether tuples are processed by a call that may wait."""
    return issubclass(cls, Bolt) and any(is_async(getattr(cls, hook)) for hook in ("process", "process_stream"))


def _why_not(cls: type) -> str:
    if issubclass(cls, BatchBolt):
        return "no hook of a BatchBolt can be; write a plain def, or make it a Bolt with `async def process(self, key, value)`"
    if issubclass(cls, Bolt):
        return "only hooks of a bolt with `async def process` can be; write a plain def, or make process async as well"
    if issubclass(cls, Sink):
        return f"of a sink only {', '.join(sorted(_ASYNC_SINK_HOOKS))} can be; write a plain def"
    return f"no hook of a {_base_of(cls)} can be; write a plain def"


def _user_bases(cls: type) -> list[type]:
    """The class and those it derives from, without Python's own and eSault's bases."""
    engine = (Bolt, BatchBolt)
    found = [
        base for base in cls.__mro__ if base not in engine and base.__module__ not in ("builtins", "typing", "abc")
    ]
    return [base for base in found if "_of_user" not in vars(base)]  # which the engine has made of one


def _examine_reserved(cls: type, unit: str, names: tuple[str, ...]) -> None:
    for base in _user_bases(cls):
        for name in names:
            if name in vars(base):
                raise TopologyError(
                    f"unit {unit!r}: {base.__name__} defines `{name}`, which the engine gives to each object; "
                    "choose another name"
                )


def _examine_attributes(cls: type, unit: str) -> None:
    """A mutable class attribute is shared by the keys of a process, and does not move with them."""
    for base in _user_bases(cls):
        for name, value in vars(base).items():
            if (name.startswith("__") and name.endswith("__")) or not isinstance(value, _MUTABLE):
                continue
            raise TopologyError(
                f"unit {unit!r}: {base.__name__}.{name} is a {type(value).__name__} on the class: shared by all keys "
                f"of a process, and it does not move. Set it in __init__: self.{name} = ...; a constant can stand "
                "outside the class, or be a tuple or a frozenset"
            )


def _examine_defaults(cls: type, unit: str) -> None:
    """A mutable default of a parameter is shared by the keys of a process, as one on the class is."""
    for base in _user_bases(cls):
        init = vars(base).get("__init__")
        if not inspect.isfunction(init):
            continue
        given = {
            name: each.default
            for name, each in inspect.signature(init).parameters.items()
            if isinstance(each.default, _MUTABLE)
        }
        for attribute, name, method in _kept_and_changed(cls, init, given):
            raise TopologyError(
                f"unit {unit!r}: {base.__name__}.__init__ keeps the default of {name!r}, and {method} changes it: Python makes one "
                f"{type(given[name]).__name__} for all keys of a process. Keep a copy: self.{attribute} = copy.copy({name})"
            )


def _kept_and_changed(cls: type, init: FunctionType, given: Mapping[str, object]) -> Iterator[tuple[str, str, str]]:
    """Yield (attribute, parameter, method): `init` keeps one of the parameters as it is, and the method changes it."""
    kept = {attribute: name for attribute, name in kept_parameters(init.__code__) if name in given} if given else {}
    for attribute, method in changed_by_methods(
        cls, kept, ("__init__",), (Bolt, Generic, object), in_place=True
    ).items():
        yield attribute, kept[attribute], method


def examine_bound(cls: type, partial: functools.partial[Any], unit: str) -> None:
    """Refuse what a partial gives to all keys of a process and one of them changes. Raises TopologyError."""
    init = getattr(cls, "__init__", None)
    if not inspect.isfunction(init):
        return
    try:
        bound = inspect.signature(init).bind_partial(None, *partial.args, **partial.keywords).arguments
    except TypeError:
        return  # said elsewhere
    given = {name: value for name, value in bound.items() if isinstance(value, _MUTABLE)}
    for attribute, name, method in _kept_and_changed(cls, init, given):
        raise TopologyError(
            f"unit {unit!r}: the partial of {cls.__name__} gives one {type(given[name]).__name__} as {name!r} to all keys of a process, "
            f"and {method} changes it. Keep a copy: self.{attribute} = copy.copy({name})"
        )


def _examine_returns(cls: type, unit: str, hooks: Mapping[str, tuple[str, ...]]) -> None:
    """Refuse hooks that return tuples and never emit: what they return is thrown away. Raises TopologyError."""
    emit = "self.emit_batch(rows)" if issubclass(cls, BatchBolt) else "self.emit(key, value)"
    for name in hooks:
        if not name.startswith("process"):
            continue
        value = returned_instead_of_emitted(getattr(cls, name), _user_bases(cls))
        if value is not None:
            raise TopologyError(
                f"unit {unit!r}: {cls.__name__}.{name} returns {value}, which is thrown away, and nothing is emitted; "
                f"use {emit} instead, or a plain `return`"
            )


def _examine_slots(cls: type, unit: str) -> None:
    """Bolt.__getstate__ takes vars(self): what stands in slots would stay behind when a key moves."""
    getstate: object = vars(Bolt)["__getstate__"]
    if getattr(cls, "__getstate__", None) is not getstate:
        return
    for base in _user_bases(cls):
        if "__slots__" not in vars(base):
            continue
        slots = vars(base)["__slots__"]
        names = [slots] if isinstance(slots, str) else list(slots)
        kept = [name for name in names if name not in ("__dict__", "__weakref__")]
        if kept or cls.__dictoffset__ == 0:
            raise TopologyError(
                f"unit {unit!r}: {base.__name__} has __slots__, whose attributes would not move with their key; "
                "leave __slots__ out, or define __getstate__ and __setstate__"
            )


def check_emits(cls: type, unit: str, base: type) -> None:
    """Refuse uses of what the other kind of bolt emits by. Raises TopologyError."""
    remedies = {"emit": "self.emit_batch([(key, value)]), best with all rows of a batch at once"}
    if base is Bolt:
        remedies = dict.fromkeys(("emit_batch", "emit_columns"), "self.emit(key, value) for each")
    found = [
        (name, what, where)
        for where, code in codes_of_methods(cls, (), (Bolt, BatchBolt, object))
        if not remedies.keys().isdisjoint(code.co_names)  # to go through its steps takes a hundred times as long
        for what, name in of_itself(code)
        if name in remedies and not hasattr(cls, name)
    ]
    made = {name for name, what, _ in found if what == "STORE_ATTR"}
    for name, _, where in found:
        if name not in made:
            raise TopologyError(
                f"unit {unit!r}: {where} uses self.{name}, which a {base.__name__} has not; write {remedies[name]}"
            )


def returned_instead_of_emitted(hook: Any, classes: Iterable[type]) -> str | None:
    """The text of a value that `hook` returns although none of these classes emits anything; None: nothing of the kind.

    A call passes, for what it does may be the purpose (`return client.send(value)`), as does what has no source to read.
    """
    if any("emit" in name for cls in classes for name in _names(cls)):
        return None
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(hook))).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        return None
    if not isinstance(tree, (ast.FunctionDef, ast.AsyncFunctionDef)) or tree.name != hook.__name__:
        return None  # a lambda, or the file is not what it was when it was imported
    for value in _returned(tree.body):
        if isinstance(value, (ast.Constant, ast.Call, ast.Await)):
            continue  # `return None`, `return True`: a way out
        # `return self.count` may serve a class of the user's own; a tuple, or a list of them, can only be meant for the engine.
        of_self = any(isinstance(node, ast.Name) and node.id == "self" for node in ast.walk(value))
        if isinstance(value, (ast.Tuple, ast.List)) or not of_self:
            return ast.unparse(value)
    return None


def _returned(body: Iterable[ast.AST]) -> Iterator[ast.expr]:
    """The values of a function's own `return` statements, not of those of functions within it."""
    for node in body:
        if isinstance(node, ast.Return) and node.value is not None:
            yield node.value
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            yield from _returned(ast.iter_child_nodes(node))


def _names(cls: type) -> Iterator[str]:
    """The names that the class's functions use, with those of functions within them."""
    for thing in vars(cls).values():
        function = inspect.unwrap(getattr(thing, "__func__", thing)) if callable(thing) else thing
        code = getattr(function, "__code__", None)
        if isinstance(code, CodeType):
            yield from _code_names(code)


def _code_names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code_names(constant)
