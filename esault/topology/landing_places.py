"""The places that the sinks of a topology write to: no two of them to one place."""

from __future__ import annotations

import os
from collections.abc import Iterable

from esault.errors import TopologyError
from esault.topology.plan import SinkPlan

__all__ = ["check_places", "places"]


def places(sinks: Iterable[SinkPlan]) -> dict[str, str]:
    """The paths of those that have one, by the sink's name; not of sinks that the engine has put beside those of the user."""
    found = {plan.name: getattr(plan.sink, "path", None) for plan in sinks if "~" not in plan.name}
    return {name: os.fspath(path) for name, path in found.items() if isinstance(path, (str, os.PathLike))}


def check_places(sinks: Iterable[SinkPlan]) -> None:
    """Raise TopologyError where two sinks own the same path."""
    taken: dict[str, str] = {}
    for plan in sinks:
        for path in plan.sink.written_paths() if plan.sink.owns_path else ():
            other = taken.setdefault(os.path.realpath(path), plan.name)
            if other != plan.name:
                raise TopologyError(
                    f"sinks {other!r} and {plan.name!r} both write {path}; give each a place of its own, or let one bolt take "
                    "both streams and write what comes of them"
                )
