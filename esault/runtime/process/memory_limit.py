"""The memory that a container or a service may use: limits of control groups, versions 1 and 2 (Linux)."""

from __future__ import annotations

from pathlib import Path

__all__ = ["MemoryLimit"]

#: files of (limit, use, statistics, pages there that can be dropped), by version
_FILES = {
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", ("total_inactive_file", "total_active_file")),
    2: ("memory.max", "memory.current", ("inactive_file", "active_file")),
}


class MemoryLimit:
    """The limits that hold for this process. Which groups it is in is looked up once; what they hold, at each call."""

    def __init__(self, proc: Path = Path("/proc/self"), mounts: Path = Path("/sys/fs/cgroup")) -> None:
        self._groups = [(folder, v) for folder, v in _groups(proc, mounts) if (folder / _FILES[v][0]).exists()]

    def __call__(self) -> tuple[int, int] | None:
        """Return bytes in use and bytes allowed of the limited group that has least left; None where none is limited.

        What is only kept because there is room does not count as in use: pages of files that were read or written, also those that
        are read often, for the system drops them before it kills a process.
        """
        found = [each for group in self._groups if (each := _read(*group)) is not None]
        return min(found, key=lambda each: each[1] - each[0], default=None)


def _groups(proc: Path, mounts: Path) -> list[tuple[Path, int]]:
    """Return the folders of this process' group and of those around it, with the version."""
    try:
        lines = (proc / "cgroup").read_text().splitlines()
    except OSError:
        return []
    found: list[tuple[Path, int]] = []
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers == "":
            tops, version = [mounts, mounts / "unified"], 2
        elif "memory" in controllers.split(","):
            tops, version = [mounts / "memory", mounts / controllers], 1
        else:
            continue
        for top in tops:
            folder = top / path.lstrip("/")
            # In a container its own group is the top, and the path may be one of the host.
            found += [(each, version) for each in (folder, *folder.parents) if each == top or top in each.parents]
    return found


def _read(folder: Path, version: int) -> tuple[int, int] | None:
    limit, used, droppable = _FILES[version]
    try:
        most = int((folder / limit).read_text())  # "max" in version 2 is none
        taken = int((folder / used).read_text())
        statistics = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):
        return None
    if most >= 1 << 60:  # how version 1 says that there is none
        return None
    return max(0, taken - sum(int(statistics.get(each, 0)) for each in droppable)), most
