"""The simulated system: sources, operators and hosts, as values. Times are seconds, rates tuples a second."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from esault.errors import UsageError

__all__ = ["Host", "Model", "Operator", "Source", "Timing"]


@dataclass(frozen=True)
class Source:
    """A source of tuples, open loop: what is due and cannot be taken waits, and counts in latencies."""

    name: str
    #: seconds since the start -> tuples a second; or something with a method `rate` that is
    rate: Any
    #: each second's rate is multiplied by a normal number around 1 with this standard deviation
    noise: float = 0.0
    #: variance over mean of what comes in a moment: 1 for single tuples at random, the size of bursts, 0 for an even stream
    burst: float = 1.0
    #: tuples that may be on their way through the topology at most, as the engine's window; None: no bound
    max_pending: float | None = None
    #: whether it can tell how much is due and was not read
    knows_lag: bool = True

    @property
    def at(self) -> Callable[[float], float]:
        """The rate as a function."""
        function: Callable[[float], float] = getattr(self.rate, "rate", self.rate)
        return function


@dataclass(frozen=True)
class Operator:
    """A bolt: FIFO queues before sub-units that take `service` seconds for a tuple."""

    name: str
    #: names of the sources and operators that send to it; each gets all of its tuples
    senders: tuple[str, ...]
    service: float
    #: sub-units at the start, and the bounds of a policy
    width: int = 1
    least: int = 1
    most: int | None = None
    #: tuples that come out for one that goes in
    selectivity: float = 1.0
    #: weights of its keys, hashed over the ring; none: any sub-unit may take any tuple, out of one queue
    keys: Sequence[float] = ()
    #: tuples that may wait, in all of its inboxes together; what comes beyond is dropped. None: no bound
    buffer: float | None = None
    #: seconds between what it emits and its arrival at the next: CRAA's windows that are handed on whole
    delay: float = 0.0
    #: bytes of state, which a change moves in part
    state: float = 0.0
    #: share of `service` that is a processor's, and is shared on the host
    cpu: float = 0.0
    #: what `service` is multiplied by, seconds since the start -> factor; or something with a method `rate` that is
    pace: Any = None
    #: weights that its keys have later: (from when, weights of as many keys), times that rise
    later_keys: Sequence[tuple[float, Sequence[float]]] = ()
    #: tuples come whole, each to the sub-unit of a key that is drawn at random. Else each sub-unit gets its share of every
    #: moment, and never more by chance
    whole: bool = False

    def service_at(self, t: float) -> float:
        """Seconds that a tuple takes at that time."""
        if self.pace is None:
            return self.service
        pace: Callable[[float], float] = getattr(self.pace, "rate", self.pace)
        return self.service * pace(t)


@dataclass(frozen=True)
class Host:
    """A machine."""

    name: str = "localhost"
    #: processors
    cores: float = 64.0


@dataclass(frozen=True)
class Timing:
    """The durations of a change. The defaults are what the engine takes on one host (see the calibration in the bench)."""

    #: until a new sub-unit can serve
    start: float = 0.3
    #: between the switch and the end of a change, for which moved keys wait, beside the time for their state
    move: float = 0.02
    #: state that is moved, a second
    bytes_per_second: float = 50e6
    #: that a tuple is on its way from one unit to the next
    net: float = 0.0005
    #: as much more until new ones serve, for each further one of the same change
    start_each: float = 0.0
    #: as much longer moved keys wait, for each new one
    move_each: float = 0.0
    #: until the table is published where none is started
    switch: float = 0.0
    #: from when moved keys go on until the change is over, and another one may begin
    finish: float = 0.0
    #: from the end of a window until the reports of it are there and a policy sees it
    reported: float = 0.0

    def times(self, factor: float) -> Timing:
        """Return that of changes that take so many times as long; bytes move as fast as before."""
        names = ("start", "start_each", "switch", "move", "move_each", "finish")
        return replace(self, **{name: factor * getattr(self, name) for name in names})

    def preparation(self, started: int) -> float:
        """Return the time from the request of a change until its table is published, by how many sub-units it starts."""
        return self.start + self.start_each * (started - 1) if started else self.switch

    def hold(self, started: int) -> float:
        """Return the time for which moved keys wait in a change that starts so many sub-units, beside that for their state."""
        return self.move + self.move_each * started


@dataclass(frozen=True)
class Model:
    """A topology of modelled operators. Senders stand before those that they send to. Raises UsageError for what cannot be."""

    parts: Sequence[Source | Operator]
    hosts: Sequence[Host] = (Host(),)
    timing: Timing = field(default_factory=Timing)
    #: places for sub-units of operators
    slots: int = 64

    def __post_init__(self) -> None:
        seen: dict[str, Source | Operator] = {}
        for part in self.parts:
            if part.name in seen:
                raise UsageError(f"there are two parts {part.name!r} in the model")
            if isinstance(part, Operator):
                self._check(part, seen)
            seen[part.name] = part
        if not any(isinstance(p, Source) for p in self.parts):
            raise UsageError("a model needs a Source")
        if not self.hosts or len({h.name for h in self.hosts}) < len(self.hosts):
            raise UsageError("a model needs hosts with names of their own")
        width = sum(p.width for p in self.parts if isinstance(p, Operator))
        if width > self.slots:
            raise UsageError(f"{width} sub-units at the start are more than {self.slots} slots")

    @staticmethod
    def _check(part: Operator, seen: dict[str, Source | Operator]) -> None:
        unknown = [s for s in part.senders if s not in seen]
        if unknown or not part.senders:
            known = ", ".join(seen) or "none"
            raise UsageError(f"operator {part.name!r}: senders {unknown} must stand before it; there are: {known}")
        if part.service <= 0 or part.selectivity < 0 or not 0 <= part.cpu <= 1:
            raise UsageError(f"operator {part.name!r}: service must be above 0, selectivity 0 or more, cpu in 0 .. 1")
        if any(len(weights) != len(part.keys) for _, weights in part.later_keys):
            raise UsageError(f"operator {part.name!r}: later_keys needs weights of its {len(part.keys)} keys")
        if not 1 <= part.least <= part.width <= (part.most or part.width):
            raise UsageError(
                f"operator {part.name!r}: 1 <= least {part.least} <= width {part.width} <= most {part.most} must hold"
            )

    @property
    def sources(self) -> list[Source]:
        """Return the sources of the model."""
        return [p for p in self.parts if isinstance(p, Source)]

    @property
    def operators(self) -> list[Operator]:
        """All operators, senders first."""
        return [p for p in self.parts if isinstance(p, Operator)]
