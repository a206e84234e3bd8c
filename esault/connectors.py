"""Connectors by name: the sources and sinks of the engine, of a program, and of installed packages.

A topology takes objects: `.spout("lines", TextFiles(path))`. So a connector of one's own needs no registration to be
used. A name makes it one of the listed connectors: a tool can ask what there is, and a package brings it along with an
entry point in the group `esault.connectors`. docs/explanation/extending.md has an example.
"""

from __future__ import annotations

from typing import Any

from esault import sinks, sources
from esault.errors import UsageError
from esault.registry import Registry
from esault.topology.sink import Sink
from esault.topology.spout import Spout

__all__ = ["find", "names", "register", "unregister"]

#: what `esault.sources` and `esault.sinks` export is what the engine has
_CONNECTORS: Registry[type[Spout[Any, Any]] | type[Sink]] = Registry(
    "connector",
    "esault.connectors",
    {
        name: f"{room.__name__}:{name}"
        for room in (sources, sinks)
        for name in room.__all__
        if isinstance(getattr(room, name), type)
    },
)


def register(name: str, connector: type[Spout[Any, Any]] | type[Sink]) -> None:
    """Give a class derived from `Spout` or `Sink` a name. Raises UsageError for what is neither, and for a name of the engine's."""
    _CONNECTORS.register(name, _checked(name, connector))


def unregister(name: str) -> None:
    """Take a registered name back; one that is not registered is left alone."""
    _CONNECTORS.unregister(name)


def names() -> list[str]:
    """Return the names of all connectors: the engine's, the registered ones, those of installed packages."""
    return _CONNECTORS.names()


def find(name: str) -> type[Spout[Any, Any]] | type[Sink]:
    """Return the class of this name. Raises UsageError, naming what there is."""
    return _checked(name, _CONNECTORS.find(name))


def _checked(name: str, connector: Any) -> type[Spout[Any, Any]] | type[Sink]:
    if not isinstance(connector, type) or not issubclass(connector, (Spout, Sink)):
        raise UsageError(f"connector {name!r}: {connector!r} is no class derived from Spout or Sink")
    return connector
