"""The sources that several readers may share with no change of an order that is promised.

Tuples of a key stay in order. Each file is read by one reader, so lines stay in order as long as their key is the file they are of.
Where lines of several files get one key, as by `key_by`, one reader gives them in the order of the files, and several do not. What
`shuffle()` has dealt out has no order, and neither have different splits.
"""

from __future__ import annotations

import inspect

from esault.topology.chaining import chain
from esault.topology.global_state import global_state
from esault.topology.method_code import code_of
from esault.topology.plan import Outlet, Plan, UnitPlan
from esault.topology.sink import Sink
from esault.topology.split_source import SplitSource
from esault.topology.spout import Spout

__all__ = ["readers", "why_alone", "why_one_reader"]

#: the hooks in which a sink opens and closes things
_HOOKS = frozenset({"open", "close", "begin", "end"})
#: names by which code writes files
_FILES = frozenset({"open", "write_text", "write_bytes"})
#: names by which code gets something of its own beside others
_WHICH = frozenset(
    {"sub_unit", "part", "getpid", "uuid4", "mkstemp", "mkdtemp", "NamedTemporaryFile", "TemporaryDirectory"}
)


def readers(plan: Plan) -> list[str]:
    """Return a line for each source of pieces: whether a run may begin with several readers, or why with one."""
    chained, lines = chain(plan), []
    for name, unit in chained.units.items():
        if unit.spout is None or type(unit.spout).pieces is Spout.pieces:
            continue
        why = why_one_reader(chained, unit)
        told = "one for each core, if files are large" if why is None else f"one ({why})"
        if why is not None and unit.reads_splits and why_alone(chained, unit) is None:
            told += ", and more while it runs where reading limits and cores are idle"
        lines.append(f"readers: {name} has {told}")
    return lines


def why_one_reader(plan: Plan, unit: UnitPlan) -> str | None:
    """Return why a spout is not to begin with several readers, in a few words; None if it may. `plan`: with what is chained."""
    if unit.edges:
        return f"{unit.edges[0].target!r} runs in processes of its own"
    if why := why_alone(plan, unit):
        return why
    assert unit.spout is not None
    ordered = not isinstance(unit.spout, SplitSource)
    return next(
        (why for o in unit.streams.values() if (why := _mixed(o, ordered and not unit.spout.keyed_by_piece))), None
    )


def why_alone(plan: Plan, unit: UnitPlan) -> str | None:
    """Return why a spout has as many readers as it begins with, whatever their order; None if it may have others."""
    if unit.spout is None or not unit.spout.parallel:
        return "it has one reader"
    if unit.max_parallelism == 1:
        return "max_parallelism is 1"
    if unit.parallelism > 1:
        return f"parallelism is said: {unit.parallelism}"
    for sink in unit.sinks:
        if made_for_one(sink.sink):
            return f"the sink {sink.name!r} opens or closes something, and does not ask context.sub_unit which of several it is"
    if global_state(plan):
        return "a function changes what stands outside it"
    return None


def _mixed(outlet: Outlet, mixed: bool) -> str | None:
    """Return what depends on the order of the pieces; `mixed`: tuples of several have one key."""
    for step in outlet.steps:
        if step.kind not in ("map", "filter", "flat_map", "key_by"):
            return f"{step.name} depends on what came before"
        mixed = mixed or step.kind == "key_by"
    if outlet.sinks and mixed:
        return f"rows of several files have one key in the sink {outlet.sinks[0].name!r}, which gets them in order"
    for branch in outlet.branches:
        if why := _mixed(branch, mixed):
            return why
    for bolt in outlet.bolts:
        for each in bolt.streams.values():
            # It has its tuples by shuffle(), which keeps no order.
            if why := _mixed(each, False):
                return why
    return None


def made_for_one(sink: Sink) -> bool:
    """Return whether a sink of the user's own may be one that takes itself for the only one.

    Such a one opens or closes something, as a file or a database that another object would empty, make once more or lock, and does not
    ask which of several it is, by `context.sub_unit` or by a name that is made for it alone.
    """
    opens, names = False, set[str]()
    for base in type(sink).__mro__:
        if base is Sink or base.__module__.startswith("esault.") or base is object:
            continue
        opens = opens or not _HOOKS.isdisjoint(vars(base))
        for member in vars(base).values():
            for code in code_of(member) if inspect.isroutine(member) else ():
                names.update(code.co_names)
    return (opens or not _FILES.isdisjoint(names)) and _WHICH.isdisjoint(names)
