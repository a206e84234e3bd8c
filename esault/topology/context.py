"""Facts that a user's object can know about the place it runs in."""

from __future__ import annotations

import functools
import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import Any

from esault.topology.user_metrics import BUCKETS, UserCounter, UserGauge, UserHistogram, UserMetrics
from esault.value_class import value_class

__all__ = ["Context", "at_once", "logger_of"]


def _unknown(key: Any) -> float:
    return -math.inf


def _never() -> float:
    return -math.inf


def at_once(work: Callable[[], Any]) -> Any:
    """Return `work()`: where there is no data loop that would wait for it."""
    return work()


def logger_of(made: Any) -> logging.Logger:
    """Return the logger of the module that an object, a class or a factory comes from; of a spout around another, that one's."""
    while isinstance(made, functools.partial):
        made = made.func
    while getattr(type(made), "stands_for_another", False):
        made = made.spout
    return logging.getLogger(getattr(made, "__module__", None) or "esault.user")


@value_class(frozen=True)
class Context:
    """The place where a spout, bolt or sink runs; `open(context)` receives it, `self.context` keeps it."""

    #: name of the unit
    unit: str
    #: the sub-unit's number within its unit, from 0; never used twice in a run
    sub_unit: int = 0
    #: name of the host
    host: str = "localhost"
    #: a logger, named as the module of the spout, bolt or sink; its lines reach the user's handlers with unit and sub-unit
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
    #: for sinks: `return self.context.in_thread(work)` in `prepare` or `commit` has `work()` done in a thread beside the data loop, which
    #: does not wait for a disk or a server then; where there is no data loop (tests, Spark) it is done at once
    in_thread: Callable[[Callable[[], Any]], Any] = at_once
    #: the run's own folder for this run's short-lived files; None where there is none
    run_dir: str | None = None
    #: one more than how often all of the run have gone back to a checkpoint. For the engine
    epoch: int = 1
    #: the metrics of the sub-unit; made by `counter`, `gauge` and `histogram`
    metrics: UserMetrics = field(default_factory=UserMetrics, repr=False, compare=False)
    _shared: list[Any] = field(default_factory=lambda: [None], repr=False, compare=False)
    _finishing: list[str | None] = field(default_factory=lambda: [None], repr=False, compare=False)
    _checkpoint: list[int | None] = field(default_factory=lambda: [None], repr=False, compare=False)

    @property
    def finishing(self) -> str | None:
        """The reason why `finish` is called: "window" (it has closed), "expired" (the key), "drained" (the input has ended, or
        the run is stopped). It means something within `finish` only."""
        return self._finishing[0]

    def counter(self, name: str, description: str = "", /, **labels: str) -> UserCounter:
        """Return a counter of your own: `self.context.counter("orders", kind="web").inc()`. Raises ValueError.

        The run adds up what its sub-units count; `--metrics` and `--otlp` export it, and the report has it.
        """
        made: UserCounter = self.metrics.get_or_create("counter", name, description, labels)
        return made

    def gauge(self, name: str, description: str = "", /, **labels: str) -> UserGauge:
        """Return a gauge of your own: `.set(3)`, `.inc()`, `.dec()`; each sub-unit has its own value. Raises ValueError."""
        made: UserGauge = self.metrics.get_or_create("gauge", name, description, labels)
        return made

    def histogram(
        self, name: str, description: str = "", /, *, buckets: Sequence[float] = BUCKETS, **labels: str
    ) -> UserHistogram:
        """Return a histogram of your own: `.observe(0.2)`; `buckets` are upper bounds. Raises ValueError."""
        made: UserHistogram = self.metrics.get_or_create("histogram", name, description, labels, buckets)
        return made

    def finish_for(self, reason: str) -> None:
        """Set what `finishing` says. For the engine."""
        self._finishing[0] = reason

    @property
    def checkpoint(self) -> int | None:
        """The number of the newest checkpoint behind which this sub-unit is; None without checkpoints. For the engine."""
        return self._checkpoint[0]

    def at_checkpoint(self, number: int | None) -> None:
        """Set what `checkpoint` says. For the engine."""
        self._checkpoint[0] = number

    @property
    def shared(self) -> Any:
        """The value that `open_shared` of the bolt returned: one for all its objects in this sub-unit; None where it defines none."""
        return self._shared[0]

    def share(self, resource: Any) -> None:
        """Set what `shared` says. For the engine."""
        self._shared[0] = resource

    def of_unit(self, unit: str) -> Context:
        """Return the context of another unit in the same process. For the engine."""
        return replace(self, unit=unit, _shared=[None])
