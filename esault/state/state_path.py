"""The place of a run's state: as it is given, or by the topology's name."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path

from esault.errors import UsageError
from esault.object_store.object_path import ObjectPath
from esault.state.place import Place, place_of
from esault.state.spool import rename_spools
from esault.state.state_dir import StateDir
from esault.topology.plan import Plan
from esault.value_class import value_class

__all__ = ["StatePath", "check_place", "default_dir", "state_path"]

#: an address of an object store; a Path has one slash of it
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+:/")


def default_dir(topology: str) -> Path:
    """Return the folder of a topology's state unless another place is named."""
    return Path(".esault") / topology


@value_class(frozen=True)
class StatePath:
    """The folder of a run's state: where it lies, and where it belongs by the names of today."""

    lies: Place
    belongs: Place
    #: units: old name -> what it is now
    moved: Mapping[str, str] = field(default_factory=dict)

    def settle(self, held: StateDir, notice: Callable[[str], None]) -> None:
        """Give the folder, which is held, and the spools in it the names of today. Raises UsageError.

        Only when the run begins: one that is refused leaves all as it was, for the code that wrote it.
        """
        if isinstance(held.path, ObjectPath):
            return
        if self.lies != self.belongs and isinstance(self.lies, Path) and isinstance(self.belongs, Path):
            try:
                shutil.rmtree(self.belongs, ignore_errors=True)
                self.lies.rename(self.belongs)
            except OSError as error:
                raise UsageError(
                    f"{self.lies} cannot be renamed to {self.belongs}: {error.strerror or error}"
                ) from error
            held.path = self.belongs
            notice(f"{self.lies} is {self.belongs} now, since topology {self.lies.name!r} is {self.belongs.name!r}")
        rename_spools(held.path, self.moved)


def state_path(plan: Plan, given: str | Path | None, renames: Mapping[str, str] | None = None) -> StatePath:
    """Return the folder of this run's state: as given, or by the topology's name, or by the name that it had. `renames` says more names."""
    moved = {**{old: new for old, new in plan.moved.items() if isinstance(new, str)}, **(renames or {})}
    units = {old: new for old, new in moved.items() if new in plan.units}
    if isinstance(given, Path) and _ADDRESS.match(str(given)):
        raise UsageError(f"state={given!r}: a Path has one slash of an address: pass it as a str")
    if given is not None:
        place = place_of(given)
        check_place(plan, place)
        return StatePath(place, place, units)
    path = default_dir(plan.name)
    if _is_empty(path):
        for before in [default_dir(old) for old, new in moved.items() if new == plan.name]:
            if before.is_dir():
                return StatePath(before, path, units)
    return StatePath(path, path, units)


def check_place(plan: Plan, place: Place) -> None:
    """Check that all state of a plan can be there. Raises UsageError."""
    for name, unit in plan.units.items() if isinstance(place, ObjectPath) else ():
        if unit.spooled:
            raise UsageError(
                f"spout {name!r}: {type(unit.spout).__name__} cannot seek, so what it reads is kept in the state directory row by row, and an object "
                f"store has no files that grow ({place}). Name a folder with --state, on a disk that stays; or read from what can seek, such as "
                "Kafka, a stream of RabbitMQ, JetStream, Redis, or files"
            )


def _is_empty(path: Path) -> bool:
    return not path.exists() or {each.name for each in path.iterdir()} <= {"lock"}
