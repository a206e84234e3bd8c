"""Garbage in processes that rows pass through.

Rows travel in columns, so that few containers are born, but what columns are unpacked from are many small tuples. With
Python's own thresholds each 700 of them are looked at, and now and then all that the process keeps: a ninth of its time.
"""

from __future__ import annotations

import gc

__all__ = ["settle_garbage"]


def settle_garbage() -> None:
    """Have the collector leave what is loaded alone, and look at what comes by tens of thousands."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
