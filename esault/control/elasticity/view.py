"""What a policy reads: frozen values, measured in one window that ends now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from esault.messages.probe import HostUsage, KeyLoad
from esault.topology.plan import UnitPlan

__all__ = ["ProbeSample", "Sample", "UnitView", "View"]


@dataclass(frozen=True)
class ProbeSample:
    """One probe to one sub-unit."""

    #: 1, 2, 3 ... for one sub-unit
    number: int
    #: seconds since the epoch
    sent: float
    #: when it came back; None: it is on its way
    back: float | None = None
    #: tuples a second that were processed between the probe before it and this one; None until it is back
    rate: float | None = None


@dataclass(frozen=True)
class Sample:
    """One sub-unit in one window. Rates are tuples a second."""

    sub_unit: int
    #: ((first, last place on the ring), ...)
    ranges: tuple[tuple[int, int], ...] = ()
    host: str = "localhost"
    #: seconds since it was started
    age: float = 0.0
    #: seconds that were measured; 0 where nothing is known yet
    window: float = 0.0
    #: read from the channels
    arrivals: float = 0.0
    processed: float = 0.0
    emitted: float = 0.0
    #: share of the window spent processing
    busy: float = 0.0
    #: seconds a tuple took without any waiting; None when too few were processed
    service: float | None = None
    #: tuples that wait in the inbox, now
    backlog: int = 0
    #: share of the inbox that is taken
    occupancy: float = 0.0
    #: delay of the newest probe that came back, seconds; None before the first
    probe_delay: float | None = None
    #: how long the oldest unanswered probe has been on its way, seconds; 0 where none is
    probe_age: float = 0.0
    #: probes that were sent or came back since the last view, by number
    probes: tuple[ProbeSample, ...] = ()
    #: processors in use, 0 .. 1 for one thread; None where the runtime cannot tell
    cpu: float | None = None
    #: bytes
    memory: int = 0
    #: bytes a second
    read: float = 0.0
    written: float = 0.0
    key_load: KeyLoad = field(default_factory=KeyLoad)
    #: of a spout: tuples due and not read; None where nobody can know
    lag: int | None = None
    #: of a spout: growth of `lag`, tuples a second
    lag_growth: float = 0.0
    #: of a spout: share of the window in which its window of open roots was closed
    throttled: float = 0.0


@dataclass(frozen=True)
class UnitView:
    """One unit at one moment."""

    name: str
    plan: UnitPlan
    #: of each sub-unit that owns a part of the ring, in ring order; of each part of a spout
    samples: tuple[Sample, ...] = ()
    #: a change is on
    changing: bool = False
    #: seconds since the epoch when the last change ended; None before the first
    changed_at: float | None = None
    #: names of the spouts that it descends from
    spouts: tuple[str, ...] = ()

    @property
    def width(self) -> int:
        """How many sub-units it has."""
        return len(self.samples)


@dataclass(frozen=True)
class View:
    """The run at one moment, for the policy of one unit."""

    #: seconds since the epoch
    now: float
    #: seconds since tuples began to flow
    since_start: float
    #: the unit that is judged
    unit: UnitView
    #: all units, senders first
    units: Mapping[str, UnitView] = field(default_factory=dict)
    hosts: tuple[HostUsage, ...] = ()
    #: places for more sub-units
    free_slots: int = 0
    #: why the guard refused what this policy wanted last; empty if it did not
    refusals: tuple[str, ...] = ()
