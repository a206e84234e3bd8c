"""Arguments that several commands share: TOPOLOGY and --set."""

from __future__ import annotations

from typing import Any

import click

from esault.cli.completion import complete_topology
from esault.topology.locate import locate
from esault.topology.located import Located
from esault.topology.parameters import convert

__all__ = ["params_of", "place_of", "set_option", "topology_argument"]

topology_argument = click.argument("topology", metavar="TOPOLOGY", shell_complete=complete_topology)
set_option = click.option(
    "--set", "settings", metavar="NAME=VALUE", multiple=True, help="A parameter of the topology; may be repeated."
)


def place_of(topology: str) -> Located:
    """Return the place of the topology. Raises LocateError."""
    return locate(topology)


def params_of(place: Located, settings: tuple[str, ...]) -> dict[str, Any]:
    """`--set` texts as values, by the function's annotations and defaults. Raises LocateError."""
    return convert(place.parameters(), list(settings))
