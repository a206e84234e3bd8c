"""Hot keys that are split: a window's bolt as two units, one for parts of a key, and one that combines what they hold.

This is local-global aggregation, as Flink calls it. Each part of a key is a key of its own to the engine, so that it moves, is saved
and dies as any other. Which part a tuple goes to changes no result: no two senders need agree on which keys are hot.
"""

from __future__ import annotations

import dataclasses
import functools
import typing
from collections.abc import Callable, Sequence
from typing import Any

from esault.errors import TopologyError
from esault.topology.bolt import Bolt
from esault.topology.calendar_window import CalendarWindow
from esault.topology.draft import Draft, OutletDraft, UnitDraft
from esault.topology.examine import examine_bolt_class, is_asynchronous
from esault.topology.factory import class_behind
from esault.topology.function import accepts
from esault.topology.grouping import SplitKey, by_key
from esault.topology.unit_options import UnitOptions, WindowOptions
from esault.topology.window import TimeWindow, TumblingWindow, Window
from esault.topology.windowing import LATE
from esault.value_class import value_class

__all__ = ["PARTIAL", "add_split_window"]

#: what the unit for parts is called, behind the name of the one that combines them
PARTIAL = "partial"
#: begins a value that holds what a part knows: (this, start of the window, state)
_MARK = "esault.partial/1"
_KEY: Any = vars(Bolt)["key"]


def add_split_window(
    draft: Draft,
    name: str,
    factory: Any,
    inputs: Sequence[tuple[OutletDraft, Any]],
    options: UnitOptions,
    windowed: WindowOptions,
) -> tuple[UnitDraft, OutletDraft]:
    """Add two units in the place of a window's; the one that combines, and the stream of late tuples. Raises TopologyError."""
    cls = _checked(name, factory, windowed, options)
    for outlet, grouping in inputs:
        if grouping != by_key():
            raise TopologyError(
                f"unit {name!r}, input {outlet.label!r}: split_hot_keys goes with by_key(), not with {grouping!r}"
            )
    partial = f"{name}.{PARTIAL}"
    draft.check_new_units(name, options.streams, partial)
    kind = windowed.window
    part = draft.add_bolt(
        partial,
        _in_part(factory, cls, kind, len(inputs) > 1),
        [(outlet, SplitKey()) for outlet, _ in inputs],
        dataclasses.replace(options, streams=()),
        windowed,
    )
    whole = draft.add_bolt(
        name,
        _combining(factory, cls),
        [(part.streams[""], by_key())],
        UnitOptions(streams=options.streams, on_error=options.on_error),
        WindowOptions(_one_window(kind), (_start_of,)),
    )
    return whole, part.streams[LATE]


def _start_of(value: Any) -> float:
    """The start of the window that what a part knows is of; 0 for what a bolt emitted by mistake, which is refused later."""
    start: float = value[1] if _is_partial(value) else 0.0
    return start


def _is_partial(value: Any) -> bool:
    return type(value) is tuple and len(value) == 3 and value[0] == _MARK


@value_class(frozen=True)
class _OneOf(TimeWindow):
    """The one window of a kind that begins at a time."""

    of: TimeWindow

    def indices(self, time: float) -> range:
        last = self.of.indices(time)[-1]
        return range(last, last + 1)

    def window(self, index: int) -> Window:
        return self.of.window(index)


def _one_window(kind: TimeWindow) -> TimeWindow:
    """A kind with the same windows, where the start of each is in that one alone."""
    return kind if type(kind) in (TumblingWindow, CalendarWindow) else _OneOf(kind)


def _checked(name: str, factory: Any, given: WindowOptions, options: UnitOptions) -> type[Bolt[Any, Any, Any, Any]]:
    """Return the class of bolts whose keys may be split. Raises TopologyError."""
    where = f"unit {name!r}: split_hot_keys"
    if not isinstance(given.window, TimeWindow):
        raise TopologyError(
            f"{where} takes windows that time alone bounds, and {given.window!r} is none: its bounds follow from all tuples of a key; "
            "take TumblingWindow, SlidingWindow or CalendarWindow"
        )
    said = [
        argument
        for argument, usual in (
            ("by", "event"),
            ("updates", "drop"),
            ("allowed_lateness", 0),
            ("early_count", None),
            ("early_seconds", None),
            ("last_pane", False),
            ("ordered", False),
        )
        if getattr(given, argument) != usual
    ]
    said += ["tick_every"] * (options.tick_every is not None)
    if said:
        raise TopologyError(
            f"{where} does not go with {' and '.join(said)}: the parts of a key are put together once, when the watermark reaches the "
            "window's end"
        )
    cls = class_behind(factory)
    if cls is None:
        raise TopologyError(
            f"{where} must know the bolt's class before it makes objects; pass the class, or a functools.partial of it"
        )
    examine_bolt_class(cls, name)
    if not issubclass(cls, Bolt):
        raise TopologyError(f"unit {name!r}: a BatchBolt has one object for all keys; a window takes a Bolt")
    if is_asynchronous(cls):
        raise TopologyError(f"unit {name!r}: its process is async, which windows do not take; write a plain def")
    combine = getattr(cls, "combine", None)
    if not callable(combine) or not accepts(combine, 2):
        raise TopologyError(
            f"{where}: {cls.__name__} must define combine(self, other), which takes in what another object of the same key and window "
            "holds; without it a key cannot be split"
        )
    return cls


def _in_part(factory: Callable[[], Any], cls: type[Any], kind: TimeWindow, several: bool) -> Any:
    """Return a factory of objects for parts of a key; `several`: several inputs meet."""

    def process(self: Any, key: Any, value: Any) -> None:
        cls.process(self, key[0], value)

    def process_stream(self: Any, stream: str, key: Any, value: Any) -> None:
        if cls.process_stream is Bolt.process_stream:
            cls.process(self, key[0], value)
        else:
            cls.process_stream(self, stream, key[0], value)

    def finish(self: Any) -> None:
        start = self.window.start
        if kind.window(kind.indices(start)[-1]) != self.window:
            raise ValueError(
                f"two windows of {kind!r} begin at {start!r}: which one the part of a key is of cannot be told; leave split_hot_keys out"
            )
        self.emit(self.key, (_MARK, start, self.__getstate__()))

    def key(self: Any) -> Any:
        return _KEY.__get__(self)[0]

    members = {
        **({"process_stream": process_stream} if several else {"process": process}),
        "finish": finish,
        "_untyped": (2, 3),
        "key": property(key, _KEY.__set__),
    }
    return _instead(factory, cls, _derived(cls, members))


def _combining(factory: Callable[[], Any], cls: type[Any]) -> Any:
    """Return a factory of objects that take in what parts know, and finish as those of `cls`."""

    def __init__(self: Any, *args: Any, **keywords: Any) -> None:  # noqa: N807
        cls.__init__(self, *args, **keywords)
        self._has_part = False

    def process(self: Any, key: Any, value: Any) -> None:
        if not _is_partial(value):
            raise RuntimeError(
                f"{cls.__name__} emits before finish, and with split_hot_keys a part of a key knows some of its tuples only; emit in finish"
            )
        if not self._has_part:  # a key in one part never needs combine
            cls.__setstate__(self, value[2])
            self._has_part = True
            return
        other = factory()
        other.key, other.window = key, self.window
        other.__setstate__(value[2])
        self.combine(other)

    members: dict[str, Any] = {"__init__": __init__, "process": process, "_untyped": (1,)}
    if cls.__getstate__ is not Bolt.__getstate__ or cls.__setstate__ is not Bolt.__setstate__:

        def __setstate__(self: Any, state: Any) -> None:  # noqa: N807
            cls.__setstate__(self, state)
            self._has_part = True  # a window has been opened by a part

        members["__setstate__"] = __setstate__
    return _instead(factory, cls, _derived(cls, members))


def _derived(cls: type[Any], members: dict[str, Any]) -> type[Any]:
    named = {"_of_user": cls, "__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    return type(cls.__name__, (cls,), {**named, **members})


def _instead(factory: Any, cls: type[Any], made: type[Any]) -> Any:
    """The same factory with another class."""
    if isinstance(factory, functools.partial):
        return functools.partial(_instead(factory.func, cls, made), *factory.args, **factory.keywords)
    assert factory is cls or typing.get_origin(factory) is cls
    return made
