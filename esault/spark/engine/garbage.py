"""Garbage in a worker of Spark's: looked for as in the processes of the actor engine.

What columns are unpacked from are many small tuples. With Python's own thresholds each 700 of them are looked at, and now and then all
that the worker keeps: that took a ninth of its time.
"""

from __future__ import annotations

import gc

__all__ = ["settle_garbage"]

_settled = False


def settle_garbage() -> None:
    """Once in a process, when what it runs is loaded: that stays, and what comes is looked at by tens of thousands."""
    global _settled
    if not _settled:
        _settled = True
        gc.freeze()
        gc.set_threshold(50_000, 20, 50)
