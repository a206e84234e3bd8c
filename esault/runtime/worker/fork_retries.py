"""Forks that failed: when each is tried again, and when it is given up. A plain core: the time is passed in."""

from __future__ import annotations

import errno
import math
from dataclasses import dataclass

from esault.messages.control import Fork

__all__ = ["GIVE_UP_AFTER", "ForkRetries", "is_shortage", "shortage"]

#: seconds until a fork that failed is tried again: at first, then twice as long each time, and at most
FIRST_WAIT, LONGEST_WAIT = 0.25, 4.0
#: seconds after the first try in which there is another one
GIVE_UP_AFTER = 30.0

_SHORTAGES = {
    errno.EAGAIN: "no more processes or threads are allowed: raise the limit (ulimit -u, pids.max of the container), end others, or run "
    "with fewer sub-units",
    errno.ENOMEM: "there is no memory for another process: give the machine or the container more, or run with fewer sub-units",
    errno.EMFILE: "the process may open no more files: raise ulimit -n",
    errno.ENFILE: "the machine may open no more files: raise fs.file-max, or end other programs",
}


def is_shortage(error: OSError) -> bool:
    """Return whether the machine is short of something that may be there later: descriptors, memory, processes."""
    return error.errno in _SHORTAGES


def shortage(error: OSError) -> str:
    """Return what is missing and the remedy."""
    said = _SHORTAGES.get(error.errno or 0)
    text = error.strerror or str(error)
    return text if said is None else f"{text}; {said}"


@dataclass
class _Failed:
    fork: Fork
    first: float
    tries: int
    at: float


class ForkRetries:
    """The forks of one keeper that failed and are to be tried again."""

    def __init__(self) -> None:
        self._failed: dict[int, _Failed] = {}

    def failed(self, fork: Fork, now: float) -> tuple[int, float]:
        """Note that this fork failed; return how often it has, and the seconds until the next try, 0 where it is given up."""
        incarnation = fork.build.incarnation
        known = self._failed.get(incarnation)
        if known is None:
            known = self._failed[incarnation] = _Failed(fork, now, 0, now)
        known.tries += 1
        if now - known.first >= GIVE_UP_AFTER:
            del self._failed[incarnation]
            return known.tries, 0.0
        wait: float = min(LONGEST_WAIT, FIRST_WAIT * 2 ** min(known.tries - 1, 10))
        known.at = now + wait
        return known.tries, wait

    def due(self, now: float) -> list[Fork]:
        """Return those to be tried again now."""
        return [each.fork for each in self._failed.values() if now >= each.at]

    def forked(self, incarnation: int) -> None:
        """Wait for this one: there is a process, which may yet find that it cannot begin."""
        known = self._failed.get(incarnation)
        if known is not None:
            known.at = math.inf

    def forget(self, incarnation: int) -> bool:
        """Try this one no more: it has succeeded, or is not wanted any longer. Return whether it was to be tried again."""
        return self._failed.pop(incarnation, None) is not None
