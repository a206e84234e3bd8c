"""Garbage in a worker of Spark's: looked for as in the processes of the actor engine.

Behind each task Spark has its worker collect all garbage, and the next stage's task waits for that. It takes 0.1 us or more for each object
that stands for a key. So objects are frozen before, which the collector leaves alone. Now and then they are not: what dies in circles
would stay otherwise.
"""

from __future__ import annotations

import gc
import sys

from esault.flow.worker import garbage

__all__ = ["settle_garbage", "spare_garbage"]

#: blocks of memory that there may be besides twice those of the last time before all is looked at again
MORE = 1 << 20

_settled = False
#: blocks of memory that were left when all was looked at last; None: it is looked at now
_left: int | None = None


def settle_garbage() -> None:
    """Before a task: once in a process, when what it runs is loaded, that stays, and what comes is looked at by tens of thousands."""
    global _settled, _left
    if not _settled:
        _settled = True
        garbage.settle_garbage()
    if _left is None:
        gc.freeze()
        _left = sys.getallocatedblocks()


def spare_garbage() -> None:
    """Behind a task: Spark's look at garbage finds nothing, or all where much has come since it was looked at."""
    global _left
    if _left is not None and sys.getallocatedblocks() > 2 * _left + MORE:
        _left = None
        gc.unfreeze()
    else:
        gc.freeze()
