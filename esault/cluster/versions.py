"""Versions that two ends must have in common before they go on."""

from __future__ import annotations

import sys

from esault.cluster.messages import PROTOCOL, Hello, Welcome
from esault.version import VERSION

__all__ = ["PYTHON", "differences", "hello"]

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"


def hello(name: str = "", address: str = "") -> Hello:
    """Return the introduction of this process."""
    return Hello(PROTOCOL, VERSION, PYTHON, name, address)


def differences(other: Hello | Welcome) -> str:
    """Return the differences between the other end and this one, for people; empty: none."""
    told = []
    if isinstance(other, Hello) and other.protocol != PROTOCOL:
        told.append(f"it speaks version {other.protocol} of the protocol, and {PROTOCOL} is spoken here")
    if other.esault != VERSION:
        told.append(f"it has eSault {other.esault}, and {VERSION} is here")
    if other.python != PYTHON:
        told.append(f"it has Python {other.python}, and {PYTHON} is here")
    return "; ".join(told)
