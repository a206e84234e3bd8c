"""Versions that two ends must have in common before they go on.

A version is the number of a release and a digest of the code that is installed: two checkouts of one number may differ.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
from pathlib import Path

import esault
from esault.cluster.messages import PROTOCOL, Hello, Welcome
from esault.version import VERSION

__all__ = ["PYTHON", "differences", "hello", "installed"]

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"


@functools.cache
def installed() -> str:
    """Return what is installed here, such as "0.1.0 (build 3fa9c0d1)"; as it was when this process asked first."""
    return f"{VERSION} (build {_digest(Path(esault.__file__).parent)})"


def _digest(folder: Path) -> str:
    # Each process on a host does it when it begins: a Path for each file would take most of the time.
    found = []
    for place, _, names in os.walk(folder):
        inside = os.path.relpath(place, folder).split(os.sep) if place != os.fspath(folder) else []
        found += [([*inside, name], os.path.join(place, name)) for name in names if name.endswith(".py")]
    digest = hashlib.sha256()
    for parts, path in sorted(found):
        with open(path, "rb") as file:
            code = file.read()
        digest.update(f"{'/'.join(parts)} {len(code)}\n".encode())
        digest.update(code)
    return digest.hexdigest()[:8]


def hello(name: str = "", address: str = "") -> Hello:
    """Return the introduction of this process."""
    return Hello(PROTOCOL, installed(), PYTHON, name, address)


def differences(other: Hello | Welcome) -> str:
    """Return the differences between the other end and this one, for people; empty: none."""
    told = []
    if isinstance(other, Hello) and other.protocol != PROTOCOL:
        told.append(f"it speaks version {other.protocol} of the protocol, and {PROTOCOL} is spoken here")
    if other.esault != installed():
        told.append(f"it has eSault {other.esault}, and {installed()} is here")
    if other.python != PYTHON:
        told.append(f"it has Python {other.python}, and {PYTHON} is here")
    return "; ".join(told)
