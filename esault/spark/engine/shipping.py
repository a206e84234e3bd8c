"""Files for the workers of a cluster: eSault itself, the topology's file and what lies beside it, in one zip on their path.

Nothing is pickled but plain values: workers import the same files, from the zip. What those files need beyond them must be installed
there; the small libraries that eSault itself needs go along where they are missing (`libraries`).
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import esault
from esault.errors import UsageError
from esault.payload.class_names import TOPOLOGY_MODULES
from esault.topology.located import Located

__all__ = ["LIBRARIES", "Shipped", "libraries", "ship"]

#: bytes of Python files that a topology's folder may hold, before something else than a folder of topologies is meant
MOST = 64 << 20
#: folders that hold no modules of a topology
_SKIPPED = {"__pycache__", "node_modules", "site-packages", "build", "dist", "venv", "env"}
#: module -> the package that has it, of those that eSault needs in a worker and that are small
LIBRARIES = {"msgpack": "msgpack", "sortedcontainers": "sortedcontainers", "google.protobuf": "protobuf"}


class Shipped:
    """A zip, and where the topology is for those who have it on their path. `code` differs where any of its files does."""

    def __init__(self, path: Path, located: Located, code: str) -> None:
        self.path = path
        self.located = located
        self.code = code


def ship(located: Located, folder: Path) -> Shipped:
    """Write the zip into `folder`, under a name that follows from what is in it. Raises UsageError."""
    files = list(_files(located))
    digest = hashlib.sha256()
    for name, file in files:
        data = file.read_bytes()
        digest.update(f"{name} {len(data)} ".encode() + data)
    code = digest.hexdigest()[:12]
    module = None
    if located.path is not None:
        # Under a name of its own, which state that is kept may hold: the file's need not be a module's.
        module = f"{TOPOLOGY_MODULES}{located_name(located)}"
        files.append((f"{module}.py", Path(located.path)))
    path = _write(folder, f"{located_name(located)}-{code}.zip", files)
    if module is None:
        return Shipped(path, replace(located, folder=str(path)), code)
    return Shipped(path, Located(located.function, str(path), located.cwd, module=module), code)


def _files(located: Located) -> Iterator[tuple[str, Path]]:
    root = Path(esault.__file__).parent
    for file in _modules(root):
        yield os.path.join("esault", file.relative_to(root)), file
    total, beside = 0, Path(located.folder)
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
        yield name, file
    if located.path is not None and Path(located.path).parent != beside:
        yield Path(located.path).name, Path(located.path)


def libraries(modules: Iterable[str], folder: Path) -> Path:
    """Write an archive of the packages that have these modules, as they are installed here, to be unpacked by workers."""
    names = sorted(LIBRARIES[module] for module in modules)
    files = [
        (str(file), Path(str(file.locate())))
        for name in names
        for file in importlib.metadata.files(name) or ()
        if ".." not in file.parts and not str(file).endswith(".pyc")
    ]
    return _write(folder, f"libraries-{'-'.join(names)}.zip", [(name, file) for name, file in files if file.is_file()])


def _write(folder: Path, name: str, files: Iterable[tuple[str, Path]]) -> Path:
    path = folder / name
    if not path.exists():  # else it is the same
        part = folder / f".{name}.part"
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as out:
            for at, file in files:
                out.write(file, at)
        os.replace(part, path)
    return path


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
