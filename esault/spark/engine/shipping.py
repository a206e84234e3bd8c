"""Files for the workers of a cluster: eSault itself, the topology's file and what lies beside it, in one zip on their path.

Nothing is pickled but plain values: workers import the same files, from the zip. What those files need beyond them (msgpack,
sortedcontainers, pyarrow, your own libraries) must be installed there.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import esault
from esault.errors import UsageError
from esault.topology.located import Located

__all__ = ["Shipped", "ship"]

#: bytes of Python files that a topology's folder may hold, before something else than a folder of topologies is meant
MOST = 64 << 20
#: folders that hold no modules of a topology
_SKIPPED = {"__pycache__", "node_modules", "site-packages", "build", "dist", "venv", "env"}


class Shipped:
    """A zip, and where the topology is for those who have it on their path."""

    def __init__(self, path: Path, located: Located) -> None:
        self.path = path
        self.located = located


def ship(located: Located, folder: Path) -> Shipped:
    """Write the zip into `folder`. Raises UsageError."""
    path = folder / f"{located_name(located)}.zip"
    total = 0
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        root = Path(esault.__file__).parent
        for file in _modules(root):
            out.write(file, os.path.join("esault", file.relative_to(root)))
        beside = Path(located.folder)
        for file in _modules(beside):
            name = str(file.relative_to(beside))
            if name.startswith("esault" + os.sep):
                continue  # the one that runs goes along
            total += file.stat().st_size
            if total > MOST:
                raise UsageError(
                    f"{beside} holds more than {MOST >> 20} MiB of Python files, all of which would go to the workers; put the topology "
                    "into a folder of its own"
                )
            out.write(file, name)
        if located.path is None:
            return Shipped(path, replace(located, folder=str(path)))
        # Under a name of its own: the file's need not be a module's.
        name = f"esault_topology_{located_name(located)}"
        out.write(located.path, f"{name}.py")
    return Shipped(path, Located(located.function, str(path), located.cwd, module=name))


def located_name(located: Located) -> str:
    """A module's name for the file or the module."""
    stem = Path(located.path).stem if located.path is not None else str(located.module)
    return "".join(c if c.isalnum() else "_" for c in stem)


def _modules(root: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(f for f in folders if f not in _SKIPPED and not f.startswith("."))
        for file in sorted(files):
            if file.endswith(".py") or file == "py.typed":
                yield Path(folder) / file
