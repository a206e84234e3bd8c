"""The places of the two versions: each process of a run builds its topology from there, with the ends that it has beside the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from esault.errors import UsageError
from esault.shadow.folder import ShadowFolder
from esault.shadow.rows import ComparedRows, ReadRows, RowsForShadow
from esault.topology.builder import Topology
from esault.topology.located import Located
from esault.topology.rewired import sinks_of, spouts_of, with_other_ends, with_sinks_beside
from esault.value_class import value_class

__all__ = ["FirstVersion", "ShadowVersion", "described"]


def described(topology: Topology) -> dict[str, Any]:
    """Return what the shadow has to know of the first version."""
    return {"topology": topology.name, "spouts": spouts_of(topology), "sinks": sinks_of(topology)}


@value_class(frozen=True)
class FirstVersion(Located):
    """A topology as it is; what it reads and puts out is kept beside."""

    shadow_folder: str = ""

    def build(self, params: Mapping[str, Any] | None = None) -> Topology:
        """Call the function; see `Located`."""
        folder = ShadowFolder(self.shadow_folder)
        return with_sinks_beside(
            super().build(params),
            lambda spout: RowsForShadow(folder.read_by(spout)),
            lambda sink: ComparedRows(folder.rows("first", sink)),
        )


@value_class(frozen=True)
class ShadowVersion(Located):
    """Another version of it, that reads what the first one has read, and writes to no place of its own."""

    shadow_folder: str = ""

    def build(self, params: Mapping[str, Any] | None = None) -> Topology:
        """Call the function; see `Located`. Raises UsageError where it has a spout that the first version has not."""
        folder = ShadowFolder(self.shadow_folder)
        topology = super().build(params)
        first = folder.about["first"]
        unknown = [name for name in spouts_of(topology) if name not in first["spouts"]]
        if unknown:
            raise UsageError(
                f"--shadow: spout {unknown[0]!r} of {self} is not in the first version, which has {', '.join(first['spouts'])}: the shadow "
                "reads what the spouts of the same names have read; give it the name that it has there"
            )
        return with_other_ends(
            topology,
            f"{first['topology']}-shadow",
            lambda spout: ReadRows(self.shadow_folder, spout),
            lambda sink: ComparedRows(folder.rows("shadow", sink)),
            folder.dead_letters,
        )
