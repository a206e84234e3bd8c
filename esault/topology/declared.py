"""Types of keys and values that units declare: the parameters of `Spout[...]` and `Bolt[...]`, and what functions of steps return.

For people only: nothing is checked by it while tuples flow. What is not declared is `Any`.
"""

from __future__ import annotations

import functools
import re
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any

from esault.topology.bolt import BatchBolt, Bolt
from esault.topology.plan import Edge, Outlet, Plan, UnitPlan
from esault.topology.spout import Spout
from esault.topology.step import Step

__all__ = ["Pair", "edge_types", "misfits", "written_pair"]

#: the types of a key and of a value
Pair = tuple[Any, Any]

_UNKNOWN: Pair = (Any, Any)
#: what stands before names, as in typing.Any
_MODULES = re.compile(r"(\w+\.)+(?=\w)")
_UNIONS = (typing.Union, types.UnionType)


def edge_types(plan: Plan) -> dict[tuple[str, int], Pair]:
    """By unit and input: what comes there, as its sender says, or else the unit itself."""
    found = {}
    for _, edge, sent in _edges(plan):
        taken = _taken(plan.units[edge.target])
        key, value = (here if there is Any else there for there, here in zip(sent, taken))
        found[edge.target, edge.input] = key, value
    return found


def misfits(plan: Plan) -> list[str]:
    """A sentence for each edge whose sender says a class that its receiver plainly does not take."""
    said = []
    for sender, edge, sent in _edges(plan):
        taken = _taken(plan.units[edge.target])
        if (
            any(map(_apart, sent, taken)) and not plan.units[edge.target].replica_index
        ):  # a replica takes what the first takes
            said.append(
                f"unit {edge.target!r} takes {written_pair(taken)}, but what comes from {sender!r} is {written_pair(sent)}"
            )
    return said


def written_pair(pair: Pair) -> str:
    """As people write it, `[str, Order]`."""
    return f"[{', '.join(map(_written, pair))}]"


def _written(kind: Any) -> str:
    if kind is type(None):
        return "None"
    if isinstance(kind, type) and typing.get_origin(kind) is None:
        return kind.__name__
    return _MODULES.sub("", repr(kind))


def _edges(plan: Plan) -> Iterator[tuple[str, Edge, Pair]]:
    """All edges of main streams, with the unit that sends there and what it says."""
    for unit in plan.units.values():
        for stream, outlet in unit.streams.items():
            yield from ((unit.name, *each) for each in _below(outlet, _UNKNOWN if stream else _sent(unit)))


def _below(outlet: Outlet, sent: Pair) -> Iterator[tuple[Edge, Pair]]:
    sent = functools.reduce(_after, outlet.steps, sent)
    yield from ((edge, sent) for edge in outlet.edges)
    for branch in outlet.branches:
        yield from _below(branch, sent)


def _after(sent: Pair, step: Step) -> Pair:
    """Return the pair of types behind a step."""
    key, value = sent
    if step.kind == "map":
        return key, _returned(step.function)
    if step.kind == "key_by":
        return _returned(step.function), value
    if step.kind == "flat_map":
        several = _returned(step.function)
        items = typing.get_args(several)
        one = items and (typing.get_origin(several) is not tuple or items[1:] == (...,))
        return key, _known(items[0]) if one else Any
    return (key, Any) if step.kind == "combine" else sent


def _returned(function: Callable[[Any], Any]) -> Any:
    if isinstance(function, type):
        return function
    try:
        said = typing.get_type_hints(function).get("return", Any)
    except Exception:  # no function of Python's own, or an annotation of what is not there
        return Any
    return getattr(function, "__self__", Any) if getattr(said, "_name", None) == "Self" else _known(said)


def _sent(unit: UnitPlan) -> Pair:
    if unit.spout is not None:
        return _pair(_parameters(type(unit.spout), Spout))
    return _pair(_of_bolt(unit)[2:])


def _taken(unit: UnitPlan) -> Pair:
    """Return the pair of types that a unit with one input takes; of several each may bring something else."""
    return _pair(_of_bolt(unit)[:2]) if len(unit.inputs) == 1 else _UNKNOWN


def _of_bolt(unit: UnitPlan) -> tuple[Any, ...]:
    factory: Any = unit.factory
    while isinstance(factory, functools.partial):
        factory = factory.func
    cls = typing.get_origin(factory) or factory
    if not isinstance(cls, type):
        return ()
    said = _parameters(factory, BatchBolt if issubclass(cls, BatchBolt) else Bolt)
    # What travels between the parts of a key and what combines them is the engine's.
    untyped = getattr(cls, "_untyped", ())
    return tuple([Any if i in untyped else each for i, each in enumerate(said)])


def _pair(parameters: tuple[Any, ...]) -> Pair:
    return (_known(parameters[0]), _known(parameters[1])) if len(parameters) == 2 else _UNKNOWN


def _parameters(cls: Any, base: type) -> tuple[Any, ...]:
    """Return what a class, or an alias such as `Count[int]`, puts in the place of the base's parameters; () where it says nothing."""
    origin = typing.get_origin(cls) or cls
    if origin is base:
        return typing.get_args(cls)
    given = dict(zip(getattr(origin, "__parameters__", ()), typing.get_args(cls)))
    for parent in vars(origin).get("__orig_bases__", origin.__bases__):
        if issubclass(typing.get_origin(parent) or parent, base):
            return tuple([given.get(each, each) for each in _parameters(parent, base)])
    return ()


def _known(kind: Any) -> Any:
    return Any if isinstance(kind, (typing.TypeVar, typing.ForwardRef, str)) else kind


def _apart(sent: Any, taken: Any) -> bool:
    """Return whether both are classes, and neither derives from the other."""
    first, second = _class(sent), _class(taken)
    if first is None or second is None or (first, second) == (int, float):
        return False
    try:
        return not (issubclass(first, second) or issubclass(second, first))
    except TypeError:  # of a Protocol
        return False


def _class(kind: Any) -> type | None:
    if kind is Any:  # a class since Python 3.11
        return None
    origin = typing.get_origin(kind)
    if origin is typing.Annotated:
        return _class(typing.get_args(kind)[0])
    if origin in _UNIONS:
        return None
    cls = origin or kind
    if hasattr(cls, "__required_keys__"):  # a TypedDict, whose objects are dicts
        return dict
    return cls if isinstance(cls, type) else None
