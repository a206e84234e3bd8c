"""Facts that a user's object can know about the place it runs in."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Context"]


def _unknown(key: Any) -> float:
    return -math.inf


def _never() -> float:
    return -math.inf


@dataclass(frozen=True)
class Context:
    """The place where a spout, bolt or sink runs; `open(context)` receives it, `self.context` keeps it."""

    #: name of the unit
    unit: str
    #: the sub-unit's number within its unit, from 0; never used twice in a run
    sub_unit: int = 0
    #: name of the host
    host: str = "localhost"
    #: a logger whose lines reach the user's terminal, marked with the unit
    logger: logging.Logger = field(default_factory=lambda: logging.getLogger("esault.user"))
    #: for a parallel spout: which of `parts` parts of the source this object reads, from 0
    part: int = 0
    #: for a parallel spout: how many parts there are
    parts: int = 1
    #: identity of the run, unique over all runs
    run: str = "local"
    #: identity of the state folder (`--state`), the same in all runs over it; without checkpoints that of the run
    lineage: str = "local"
    #: the engine's clock, seconds since the epoch; a manual clock in tests
    now: Callable[[], float] = time.time
    #: for bolts with timers: event time up to which all tuples of a key have come, seconds since the epoch; -inf: not known
    watermark: Callable[[Any], float] = _unknown
    #: for bolts with `ttl(by="event")`: time of the tuple or timer that is processed, seconds since the epoch; -inf: not known
    event_time: Callable[[], float] = _never
    #: the run's own folder for this run's short-lived files; None where there is none
    run_dir: str | None = None
    _finishing: list[str | None] = field(default_factory=lambda: [None], repr=False, compare=False)

    @property
    def finishing(self) -> str | None:
        """The reason why `finish` is called: "window" (it has closed), "expired" (the key), "drained" (the input has ended, or
        the run is stopped). It means something within `finish` only."""
        return self._finishing[0]

    def finish_for(self, reason: str) -> None:
        """Set what `finishing` says. For the engine."""
        self._finishing[0] = reason
