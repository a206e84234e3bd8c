"""The machine and the versions that a result belongs to."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

__all__ = ["facts"]

PACKAGES = ("thespian", "msgpack", "sortedcontainers", "psutil", "pyarrow", "bytewax")


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as info:
            return next(line.partition(":")[2].strip() for line in info if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _commit() -> str | None:
    """The commit of this checkout; with a + where files differ from it. None outside of git."""
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty=+", "--abbrev=12", "--exclude=*"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def facts() -> dict[str, Any]:
    """Machine, system and versions; the load average of the last minute, that is of what else went on."""
    from esault.version import VERSION

    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "load_at_start": os.getloadavg()[0],
        "commit": _commit(),
        "packages": {"esault": VERSION, **{p: _version(p) for p in PACKAGES}},
    }
