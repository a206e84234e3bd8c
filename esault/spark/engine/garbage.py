"""Garbage in a worker of Spark's: looked for as in the processes of the actor engine."""

from __future__ import annotations

from esault.flow.worker import garbage

__all__ = ["settle_garbage"]

_settled = False


def settle_garbage() -> None:
    """Once in a process, when what it runs is loaded: that stays, and what comes is looked at by tens of thousands."""
    global _settled
    if not _settled:
        _settled = True
        garbage.settle_garbage()
