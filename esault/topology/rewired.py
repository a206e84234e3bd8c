"""A topology with other ends: sinks beside its own, or sources and sinks in the place of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from esault.topology.builder import Topology
from esault.topology.error_policy import ErrorPolicy
from esault.topology.plan import SinkPlan
from esault.topology.sink import Sink
from esault.topology.spout import Spout

__all__ = ["is_beside", "sinks_of", "spouts_of", "with_other_ends", "with_sinks_beside"]


#: ends of the names of sinks beside: of one that takes what another is given, and of one that takes what a spout reads
_SHADOW, _READ = "~shadow", "~read"


def is_beside(sink: str) -> bool:
    """Return whether a sink of this name was set beside another one, or a spout: no user's has such a name."""
    return sink.endswith((_SHADOW, _READ))


def spouts_of(topology: Topology) -> list[str]:
    """Return the names of the spouts."""
    return [name for name, unit in topology._draft.units.items() if unit.settings.kind == "spout"]


def sinks_of(topology: Topology) -> list[str]:
    """Return the names of the sinks."""
    units = topology._draft.units.values()
    return [sink.name for unit in units for outlet in unit.outlets for sink in outlet.sinks]


def with_sinks_beside(
    topology: Topology, beside_spout: Callable[[str], Sink], beside_sink: Callable[[str], Sink]
) -> Topology:
    """Return the topology, in which a sink more takes what each spout reads, and another one what each sink is given."""
    for name, unit in topology._draft.units.items():
        for outlet in unit.outlets:
            outlet.sinks += [SinkPlan(f"{sink.name}{_SHADOW}", beside_sink(sink.name)) for sink in outlet.sinks]
        if unit.settings.kind == "spout":
            unit.streams[""].sinks.append(SinkPlan(f"{name}{_READ}", beside_spout(name)))
    return topology


def with_other_ends(
    topology: Topology,
    name: str,
    spout: Callable[[str], Spout[Any, Any]],
    sink: Callable[[str], Sink],
    dead_letters: Callable[[str], str],
) -> Topology:
    """Return the topology under this name, with a spout of one sub-unit for each of its own, other sinks, and other paths of dead letters."""

    def elsewhere(policy: ErrorPolicy) -> ErrorPolicy:
        return policy if policy.path is None else replace(policy, path=dead_letters(policy.path))

    draft = topology._draft
    draft.moved = {old: new for old, new in draft.moved.items() if new != draft.name}
    draft.name = name
    for unit in draft.units.values():
        of = unit.settings
        if of.kind == "spout":
            of = replace(of, spout=spout(of.name), parallelism=1, min_parallelism=1, max_parallelism=1)
        unit.settings = replace(of, on_error=elsewhere(of.on_error))
        for outlet in unit.outlets:
            outlet.steps = tuple(replace(step, on_error=elsewhere(step.on_error)) for step in outlet.steps)
            outlet.sinks[:] = [SinkPlan(each.name, sink(each.name)) for each in outlet.sinks]
    return topology
