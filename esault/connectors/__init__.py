"""Connectors by name: the sources, sinks and lookup tables of the engine, of a program, and of installed packages.

Each folder here has those of one system that is reached over the network. Users import them from `esault.sources`,
`esault.sinks` and `esault.lookups`, which load them when they are asked for.

A topology takes objects: `.spout("lines", TextFiles(path))`. So a connector of one's own needs no registration to be
used. A name makes it one of the listed connectors: a tool can ask what there is, and a package brings it along with an
entry point in the group `esault.connectors`. docs/explanation/extending.md has an example.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from esault.connectors.lookup import Lookup
from esault.errors import UsageError
from esault.registry import Registry
from esault.topology.sink import Sink
from esault.topology.spout import Spout

__all__ = ["find", "names", "register", "unregister"]

_Connector = type[Spout[Any, Any]] | type[Sink] | type[Lookup]


@cache
def _connectors() -> Registry[_Connector]:
    """All by name. The engine's own are what its three shelves export."""
    shelves = [import_module(name) for name in ("esault.sources", "esault.sinks", "esault.lookups")]
    places = {name: f"{shelf.__name__}:{name}" for shelf in shelves for name in shelf.__all__ if name[0].isupper()}
    return Registry("connector", "esault.connectors", places)


def register(name: str, connector: _Connector) -> None:
    """Give a class derived from `Spout` or `Sink` a name. Raises UsageError for what is neither, and for a name of the engine's."""
    _connectors().register(name, _checked(name, connector))


def unregister(name: str) -> None:
    """Take a registered name back; one that is not registered is left alone."""
    _connectors().unregister(name)


def names() -> list[str]:
    """Return the names of all connectors: the engine's, the registered ones, those of installed packages."""
    return _connectors().names()


def find(name: str) -> _Connector:
    """Return the class of this name. Raises UsageError, naming what there is."""
    return _checked(name, _connectors().find(name))


def _checked(name: str, connector: Any) -> _Connector:
    if not isinstance(connector, type) or not issubclass(connector, (Spout, Sink, Lookup)):
        raise UsageError(f"connector {name!r}: {connector!r} is no class derived from Spout, Sink or Lookup")
    return connector
