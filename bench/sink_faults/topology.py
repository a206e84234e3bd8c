"""Numbers, counted by key, into one sink; the sink ends its own process within `prepare` or `commit` where a file asks for that."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
from pathlib import Path
from typing import Any

from bench.sink_faults.sinks import SINKS
from bench.sink_faults.source import Numbers
from esault import Bolt, Sink, Topology, by_key

__all__ = ["ASKED", "HOOKS", "Numbered", "topology"]

#: in the folder, with the name of a hook behind it: the next process that calls the hook is to die in it
ASKED = "die-in-"
HOOKS = ("prepare", "commit")
#: seconds from the beginning of the hook to the end of its process, at most
WITHIN = 0.02


class Numbered(Bolt):
    """Puts out each number, with how many of its key there were."""

    def __init__(self) -> None:
        self.count = 0

    def process(self, key: str, value: int) -> None:
        """Emit it."""
        self.count += 1
        self.emit(key, {"value": value, "count": self.count})


def _die_if_asked(folder: Path, hook: str) -> None:
    try:
        (folder / f"{ASKED}{hook}").unlink()
    except FileNotFoundError:
        return
    # a thread: what the hook does meanwhile goes on, or has been done
    timer = threading.Timer(random.uniform(0, WITHIN), os.kill, (os.getpid(), signal.SIGKILL))
    timer.daemon = True
    timer.start()


def mortal(sink: Sink, folder: Path) -> Sink:
    """Have a sink die in its hooks where it is asked to; it is the sink of its class in all else."""
    base: Any = type(sink)

    class Mortal(base):
        def prepare(self, epoch: int, /) -> Any:
            _die_if_asked(folder, "prepare")
            return super().prepare(epoch)

        def commit(self, epoch: int, handle: Any, /) -> Any:
            if handle is not None or base.commit is Sink.commit:  # one that commits nothing of its own has no handle
                _die_if_asked(folder, "commit")
            return super().commit(epoch, handle)

    if base.commit_all is not Sink.commit_all:

        def commit_all(self: Any, epoch: int, handles: Any, /) -> Any:
            if any(handle is not None for handle in handles):
                _die_if_asked(folder, "commit")
            return base.commit_all(self, epoch, handles)

        Mortal.commit_all = commit_all
    Mortal.__name__ = Mortal.__qualname__ = base.__name__
    with contextlib.suppress(AttributeError):
        Mortal.__module__ = base.__module__
    sink.__class__ = Mortal
    return sink


def topology(folder: str, sink: str, where: str, rate: float = 1000.0) -> Topology:
    """`where`: what the sink is told of its server and target."""
    t = Topology("sink_faults")
    numbers = t.spout("numbers", Numbers(folder, float(rate)))
    counted = numbers.bolt("count", Numbered, grouping=by_key(), parallelism=2)
    counted.sink("out", mortal(SINKS[sink](where), Path(folder)))
    return t
