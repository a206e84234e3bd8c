"""The topology's code on its way to other hosts: its file, what stands beside it, and what it needs installed."""

from __future__ import annotations

import ast
import contextlib
import hashlib
import os
import re
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path, PurePosixPath

from esault.cluster.messages import ShippedFile
from esault.errors import UsageError

__all__ = ["check_versions", "needed", "relative", "ship", "unload"]

#: files and bytes; more is no topology but a home folder
MOST_FILES, MOST_BYTES = 1000, 16 << 20
#: endings of files of settings, which go along from beside the topology's file; and of what else is read from within a package
SETTINGS = frozenset((".yaml", ".yml", ".toml", ".ini", ".cfg"))
READ = SETTINGS | {".json", ".sql", ".csv", ".tsv", ".txt", ".xml", ".j2", ".avsc", ".proto"}
#: of these files: how many, and bytes of one. What is more, or larger, is data, and has its place elsewhere
MOST_READ, MOST_OF_ONE = 200, 1 << 20


def ship(folder: str, path: str | None, module: str | None) -> tuple[ShippedFile, ...]:
    """The Python files of a topology that is imported from `folder`, as `path` or as `module`, and small files that they may read.

    Of a file: itself, the modules beside it, and the packages beside it. Of a module: the module or package that it begins with,
    none if that is installed. Of settings: those beside the file. Of a package: settings and what else is small and no code.
    Raises UsageError.
    """
    root = Path(folder)
    files: list[Path] = []
    read: list[Path] = []
    if module is not None:
        top = module.partition(".")[0]
        if (root / top).is_dir():
            files = sorted((root / top).rglob("*.py"))
            read = _small(sorted((root / top).rglob("*")), root, READ)
        elif (root / f"{top}.py").is_file():
            files = [root / f"{top}.py"]
    else:
        assert path is not None
        files = [Path(path), *(each for each in sorted(root.glob("*.py")) if each != Path(path))]
        read = _small(sorted(root.iterdir()), root, SETTINGS)
        for each in sorted(root.iterdir()):
            if each.is_dir() and (each / "__init__.py").is_file():
                files += sorted(each.rglob("*.py"))
                read += _small(sorted(each.rglob("*")), root, READ)
    if len(files) > MOST_FILES:
        raise UsageError(
            f"{folder} holds {len(files)} Python files, and {MOST_FILES} are the most that are sent to other hosts: put the topology and "
            "what it imports into a folder of its own, or into a package that is installed on all hosts"
        )
    shipped, size = [], 0
    for each in files:
        try:
            data = each.read_bytes()
        except OSError as error:
            raise UsageError(f"{each} cannot be read, to be sent to other hosts: {error.strerror or error}") from None
        size += len(data)
        if size > MOST_BYTES:
            raise UsageError(
                f"the Python files in {folder} take more than the {MOST_BYTES >> 20} MiB that are sent to other hosts: put the "
                "topology and what it imports into a folder of its own"
            )
        shipped.append(_shipped(each.relative_to(root), data))
    for each in read[:MOST_READ]:
        with contextlib.suppress(OSError):  # the code that reads it will say so
            data = each.read_bytes()
            if len(data) <= MOST_OF_ONE and size + len(data) <= MOST_BYTES:
                size += len(data)
                shipped.append(_shipped(each.relative_to(root), data))
    return tuple(shipped)


def _shipped(name: Path, data: bytes) -> ShippedFile:
    return ShippedFile(name.as_posix(), hashlib.sha256(data).hexdigest(), data)


def _small(files: Iterable[Path], root: Path, endings: Collection[str]) -> list[Path]:
    """Return those files, none of them hidden, that have one of the endings and are small."""
    found = []
    for each in files:
        hidden = any(part.startswith(".") for part in each.relative_to(root).parts)
        if each.suffix in endings and not hidden and each.is_file() and each.stat().st_size <= MOST_OF_ONE:
            found.append(each)
    return found


def unload(files: Iterable[ShippedFile], into: Path) -> None:
    """Write the files into the folder. Raises UsageError for one that is not what was sent, would go elsewhere or cannot be written."""
    for file in files:
        place = PurePosixPath(file.path)
        if place.is_absolute() or ".." in place.parts or not place.parts:
            raise UsageError(f"a file named {file.path!r} is not written: it lies outside the topology's folder")
        if hashlib.sha256(file.data).hexdigest() != file.sha256:
            raise UsageError(f"{file.path} is not what was sent: its hash differs")
        target = into.joinpath(*place.parts)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.data)
        except (OSError, ValueError) as error:
            raise UsageError(f"{file.path!r} cannot be written: {error}") from None


def needed(files: Sequence[ShippedFile], first: str) -> dict[str, str]:
    """Distribution -> version here, of what is installed and imported by the shipped file or module `first` and those it imports.

    What else stands beside a topology and is not imported by it need not be the same on other hosts.
    """
    by_top: dict[str, list[ShippedFile]] = {}
    for file in files:
        if file.path.endswith(".py"):
            by_top.setdefault(_top(file.path), []).append(file)
    tops, waiting, seen = set[str](), [_top(first)], set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if name not in by_top:
            tops.add(name)
        for file in by_top.get(name, ()):
            waiting += _imported(file)
    tops -= set(sys.stdlib_module_names) | {"esault"}
    if not tops:
        return {}
    return {name: metadata.version(name) for name in sorted(_distributions(tops))}


def _distributions(tops: set[str]) -> set[str]:
    """Return the distributions that hold one of these packages and modules.

    `packages_distributions` of importlib takes apart the lists of all files of all that is installed, for all names: with 200
    distributions a third of a second of the driver's start.
    """
    listed = re.compile(rf"^(?:{'|'.join(map(re.escape, sorted(tops)))})(?:/|\.[^/,\n]*(?:,|$))", re.MULTILINE)
    found = set()
    for each in metadata.distributions():
        if declared := (each.read_text("top_level.txt") or "").split():
            holds = not tops.isdisjoint(declared)
        else:
            files = each.read_text("RECORD") or "\n".join(map(str, each.files or ()))
            holds = listed.search(files) is not None
        if holds:
            found.add(each.metadata["Name"])
    return found


def _top(name: str) -> str:
    """The module or package at the top that a file belongs to, or a dotted name begins with."""
    return PurePosixPath(name).parts[0].removesuffix(".py").partition(".")[0]


def _imported(file: ShippedFile) -> list[str]:
    """Names at the top of all that it imports, wherever in it."""
    try:
        tree = ast.parse(file.data)
    except (SyntaxError, ValueError):
        return []  # one that is not imported, or the import will say so
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [_top(alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.append(_top(node.module))
    return names


def check_versions(wanted: Mapping[str, str], here: str) -> None:
    """Raises UsageError, naming the host `here`, unless these distributions are installed in these versions."""
    wrong = []
    for name, version in wanted.items():
        try:
            found = metadata.version(name)
        except metadata.PackageNotFoundError:
            wrong.append(f"{name} {version} is missing")
            continue
        if found != version:
            wrong.append(f"{name} is {found} there and {version} here")
    if wrong:
        what = " ".join(f"{name}=={version}" for name, version in wanted.items())
        raise UsageError(
            f"host {here} has other packages than the topology was checked with: {'; '.join(wrong)}; pip install {what}"
        )


def relative(path: str | None, folder: str) -> str | None:
    """The shipped name of a file in `folder`."""
    return None if path is None else Path(os.path.relpath(path, folder)).as_posix()
