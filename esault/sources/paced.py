"""A spout's tuples at a set rate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar

from esault.errors import TopologyError
from esault.sources.rate import Rate, RateSpec
from esault.topology.columns import Columns
from esault.topology.context import Context
from esault.topology.split_source import refuse_splits
from esault.topology.spout import Spout, SpoutAround, is_acknowledged

__all__ = ["Paced"]

K = TypeVar("K")
V = TypeVar("V")


class Paced(SpoutAround[K, V]):
    """Offers the tuples of `spout` at `rate`, open loop: it does not slow down because the topology does.

    `rate` is tuples per second, for all parts of a parallel spout together: a number; a list of steps (seconds since
    the first read, rate from then on); or a function of the seconds since the first read, sampled every 10 ms.
    A tuple that could not be offered when it was due is offered as soon as possible, and its latency counts from
    when it was due. `burst` is the most tuples that one read offers, however many are due; None: as many as fit.

    It can go on after a restart if `spout` can. `spout` should always have a tuple ready: the time that it has none
    counts as delay.
    """

    delivery_guarantee: ClassVar[str] = "as the source in it"
    #: logs under the name of the spout in it
    stands_for_another: ClassVar[bool] = True

    def __new__(cls, spout: Any = None, *arguments: Any, **named: Any) -> Paced[Any, Any]:
        # whether a spout has positions shows in its class
        return super().__new__(
            _PacedOn if cls is Paced and isinstance(spout, Spout) and is_acknowledged(spout) else cls
        )

    def __init__(self, spout: Spout[K, V], rate: RateSpec, *, burst: int | None = None) -> None:
        given: object = spout
        if not isinstance(given, Spout):
            made = f"{given.__name__}(...)" if isinstance(given, type) else "an object of a class derived from Spout"
            raise TopologyError(f"Paced: {given!r} is no spout; pass {made}")
        refuse_splits("Paced", spout)
        if burst is not None and (not isinstance(burst, int) or isinstance(burst, bool) or burst < 1):
            raise TopologyError(f"Paced: burst={burst!r}: write a number of tuples of at least 1, or None")
        try:
            Rate(rate)
        except TopologyError as error:
            raise TopologyError(f"Paced: {error}") from None
        self.spout = spout
        self.parallel = spout.parallel  # type: ignore[misc]  # as the spout within, object by object
        self.reads_command, self.takes_ahead, self.ordered = spout.reads_command, spout.takes_ahead, spout.ordered
        self.seekable, self.seeks_by_reading = spout.seekable, spout.seeks_by_reading
        self.moving_start = spout.moving_start
        self._spec = rate
        self._rate: Rate | None = None
        self._burst = burst
        self._start = 0.0
        self._offered = 0
        self._due: float | None = None
        self._halted = False

    def check(self) -> None:
        """As the spout within."""
        self.spout.check()

    def open(self, context: Context) -> None:
        """Opens the spout within."""
        self.context = self.spout.context = context
        self.spout.open(context)

    def read(self, limit: int) -> Sequence[tuple[K, V]] | Columns:
        """Up to `limit` of the tuples that are due by now."""
        now = self.context.now()
        if self._halted:
            self._due = None
            return self.spout.read(limit)
        if self._rate is None:
            self._start = now
            self._rate = Rate(self._spec, self.context.part, self.context.parts)
        count = min(limit, self._rate.due(now - self._start) - self._offered)
        if self._burst is not None:
            count = min(count, self._burst)
        self._due = None
        if count < 1:
            return []
        rows = self.spout.read(count)
        if rows:
            self._due = min(now, self._start + self._rate.time_of(self._offered))
            self._offered += len(rows)
            self._rate.forget(self._offered)
        return rows

    def due(self) -> float | None:
        """Return the time at which the first tuple of the last read was due, seconds since the epoch; None if it gave none."""
        return self._due

    def next_due(self) -> float | None:
        """Return the time at which the next tuple is due."""
        if self._rate is None or self._halted:
            return None
        return self._start + self._rate.next_time(self._offered)

    def row_ids(self) -> Sequence[str] | None:
        """As the spout within."""
        return self.spout.row_ids()

    def halt(self) -> Any:
        """As the spout within; what it has taken no longer waits until it is due."""
        self._halted = True
        return self.spout.halt()

    def begin_with(self, rest: Any) -> None:
        """As the spout within."""
        self.spout.begin_with(rest)

    def commit(self, position: Any) -> None:
        """As the spout within."""
        self.spout.commit(position)

    def lag(self) -> int | None:
        """Tuples that are due by now and have not been offered."""
        if self._rate is None:
            return 0
        return max(0, self._rate.due(self.context.now() - self._start) - self._offered)

    def without_pace(self) -> Spout[K, V]:
        """As the spout within."""
        return self.spout.without_pace()


class _PacedOn(Paced[K, V]):
    """Around a spout that has positions."""

    def position(self) -> Any:
        """As the spout within."""
        return self.spout.position()

    def seek(self, position: Any) -> None:
        """As the spout within; the rate starts anew."""
        self.spout.seek(position)


_PacedOn.__name__ = _PacedOn.__qualname__ = "Paced"
