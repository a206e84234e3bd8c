"""The time for which threads of numpy's linear algebra look for work, where it is the engine that has numpy loaded.

pyarrow loads numpy, and numpy's OpenBLAS starts a thread for each core but one, which spins for 2**26 cycles before it sleeps: 0.1 s of
the second of two cores, in each process that writes a table, for which there is never work.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["short_spin"]

#: what OpenBLAS reads when it is loaded, and not again: the power of two of the cycles; 4 is the least that it takes
_TIMEOUT = "OPENBLAS_THREAD_TIMEOUT"
#: its older name, which counts as well
_OLDER = "GOTO_THREAD_TIMEOUT"
_LEAST = "4"


@contextmanager
def short_spin() -> Iterator[None]:
    """Have OpenBLAS spin briefly if it is loaded within. What a user says of it, or has loaded by then, stays as it is."""
    if "numpy" in sys.modules or _TIMEOUT in os.environ or _OLDER in os.environ:
        yield
        return
    os.environ[_TIMEOUT] = _LEAST
    try:
        yield
    finally:
        os.environ.pop(_TIMEOUT, None)
