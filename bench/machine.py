"""What was measured on: written into every result."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from typing import Any

import psutil

__all__ = ["facts"]

PACKAGES = ("esault", "thespian", "msgpack", "pyzmq", "sortedcontainers", "pyarrow", "bytewax")


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


def facts() -> dict[str, Any]:
    """Machine, system and versions."""
    from esault.version import VERSION

    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load_at_start": os.getloadavg()[0],
        "packages": {**{p: _version(p) for p in PACKAGES}, "esault": VERSION},
    }
