"""A kind of fault: what it is called, what makes it happen, what must follow."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable
from typing import NamedTuple

from bench.kit.victim import Lost, Victim

__all__ = ["DEATH", "EITHER", "END", "NOTHING", "Kind", "kill"]

#: what follows: all go back to a checkpoint (or, without those, a process is replaced); the command ends, and another one goes on;
#: neither; or either of them, as it happens
DEATH, END, NOTHING, EITHER = "death", "end", "nothing", "either"


class Kind(NamedTuple):
    """One kind of fault. `happen(victim, order, hold)`: `hold` is how long what lasts does, in seconds."""

    name: str
    happen: Callable[[Victim, random.Random, float], str]
    #: how often, against the others
    weight: float
    #: it can be survived without checkpoints, too
    always: bool = True


def kill(pid: int) -> None:
    """Kill a process. Raises Lost where it is gone."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        raise Lost("it was gone already") from None
