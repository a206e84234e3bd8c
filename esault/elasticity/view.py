"""The view that a policy reads: frozen values, measured in one window that ends now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from esault.elasticity.objective import ObjectiveStatus
from esault.messages.change_record import ChangeRecord
from esault.messages.probe import HostUsage, KeyLoad
from esault.topology.plan import UnitPlan
from esault.value_class import value_class

__all__ = ["HELD_BACK", "ProbeSample", "RunView", "Sample", "UnitView", "UnitWindow", "View"]

#: share of a window in which a spout might not read, from which what it read is no measure of what there was
HELD_BACK = 0.5
#: and below which it was not held back
HARDLY = 0.02
#: so many times what was read in a window is no burst that will have been read in a moment
LASTING = 4


@value_class(frozen=True)
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


@value_class(frozen=True)
class Sample:
    """One sub-unit in one window. Rates are tuples a second."""

    sub_unit: int
    #: ((first, last place on the ring), ...)
    ranges: tuple[tuple[int, int], ...] = ()
    host: str = "localhost"
    #: index of the active replica that it belongs to, from 0
    replica: int = 0
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
    #: share of its unit's tuples that come for its ranges, over the last seconds in which these were its own, the same for all of the unit;
    #: None where nothing is known yet, and where ranges do not decide who gets a tuple
    load_share: float | None = None
    #: seconds a tuple took without any waiting; None when too few were processed
    service: float | None = None
    #: mean seconds that a tuple waited and was worked on here of late; None when nothing is known
    latency: float | None = None
    #: tuples that wait in the inbox, now
    backlog: int = 0
    #: share of the inbox that is taken
    occupancy: float = 0.0
    #: delay of the newest probe that came back, seconds; None before the first
    probe_delay: float | None = None
    #: probes that were sent or came back since the last view, by number
    probes: tuple[ProbeSample, ...] = ()
    #: processors in use, 0 .. 1 for one thread; None where the runtime cannot tell
    cpu: float | None = None
    #: share of its time in which it could have run and had no processor; None where the system does not tell
    cpu_wait: float | None = None
    #: bytes
    memory: int = 0
    #: bytes a second
    read: float = 0.0
    written: float = 0.0
    key_load: KeyLoad = field(default_factory=KeyLoad)
    #: of a spout: tuples due and not read; None where it cannot be known
    lag: int | None = None
    #: of a spout: growth of `lag`, tuples a second
    lag_growth: float = 0.0
    #: of a spout: share of the window in which its window of open roots was closed
    backpressured: float = 0.0


@value_class(frozen=True)
class UnitWindow:
    """One unit between two instants that are the same for all units of the run. What is counted are tuples, not rates."""

    #: seconds since the epoch
    start: float
    end: float
    #: that came by its channels, dropped ones too; of a spout: read from its source
    arrivals: float = 0.0
    processed: float = 0.0
    emitted: float = 0.0
    #: came when a bounded inbox was full, and were dropped
    dropped: float = 0.0
    #: seconds of processing without any waiting, all sub-units together
    busy: float = 0.0
    #: tuples that waited in its inboxes at the start and at the end
    waiting_before: float = 0.0
    waiting: float = 0.0
    #: sub-units at the end
    width: int = 1
    #: of `busy`, for tuples that are not over at its end, less what was so at its start: many calls may be open at once
    opened: float = field(default=0.0, kw_only=True)
    #: of a spout: tuples due and not read at the start and at the end; None where it cannot be known
    lag_before: float | None = None
    lag: float | None = None
    #: of a spout: share of the window in which it might not read, since too much of it was in flight
    backpressured: float = 0.0

    @property
    def seconds(self) -> float:
        """Return its length in seconds."""
        return self.end - self.start

    @property
    def service(self) -> float | None:
        """Mean seconds that one tuple takes one sub-unit, without waiting; None when none was processed."""
        return self.ended / self.processed if self.processed > 0 else None

    @property
    def ended(self) -> float:
        """Seconds of processing of the tuples that were over in it; all sub-units together."""
        return max(0.0, self.busy - self.opened)

    @property
    def offered(self) -> float:
        """Of a spout: tuples a second that its source had due, read or not; what was read where the rest is unknown.

        Less than what was read while it is caught up: what waited before the window was not offered in it.
        """
        if self.seconds <= 0:
            return 0.0
        known = self.lag is not None and self.lag_before is not None
        growth = self.lag - self.lag_before if known else 0.0  # type: ignore[operator]
        return max(0.0, self.arrivals + growth) / self.seconds

    @property
    def own_pace(self) -> UnitWindow:
        """Of a spout: the window without what is due and not read, where that lasts and it was hardly ever held back.

        Then it reads as fast as it can by itself, and no unit behind it gets more by growing.
        """
        if self.lag is not None and self.lag > LASTING * self.arrivals and self.backpressured < HARDLY:
            return replace(self, lag_before=None, lag=None)
        return self

    @property
    def blind(self) -> bool:
        """Of a spout: it was held back for most of the window, and it is unknown how much more there is."""
        return self.backpressured > HELD_BACK and (self.lag is None or self.lag_before is None)


@value_class(frozen=True)
class UnitView:
    """One unit at one moment."""

    name: str
    plan: UnitPlan
    #: of each sub-unit that owns a part of the ring, in ring order, replica by replica; of each part of a spout
    samples: tuple[Sample, ...] = ()
    #: a change is on
    changing: bool = False
    #: seconds since the epoch when the last change ended; None before the first
    changed_at: float | None = None
    #: names of the spouts that it descends from
    spouts: tuple[str, ...] = ()
    #: the last change that has ended; None before the first
    last: ChangeRecord | None = None
    #: the last aligned window; None before the first is full, and for policies that have no period
    window: UnitWindow | None = None
    #: tuples that fit into all of its inboxes together, beyond which they are dropped; None: its inboxes drop nothing
    buffer: float | None = None
    #: seconds since the epoch when one of its sub-units died last; None where none has
    died_at: float | None = None

    @property
    def width(self) -> int:
        """Return the number of its sub-units; active replicas of one count once."""
        return sum(sample.replica == 0 for sample in self.samples)

    @property
    def heaviest_share(self) -> float:
        """The largest share of its tuples that comes to one sub-unit, 0 .. 1; an even part where nothing is known of them."""
        known = [sample.load_share for sample in self.samples if sample.load_share is not None]
        return max(known, default=1.0 / max(1, self.width))

    @property
    def first_replica(self) -> UnitView:
        """The same with the samples of one replica, for sums of samples."""
        if self.plan.replicas == 1:
            return self
        return replace(self, samples=tuple(sample for sample in self.samples if sample.replica == 0))


@value_class(frozen=True)
class RunView:
    """The run at one moment, for a policy that judges units together."""

    #: seconds since the epoch
    now: float
    #: seconds since tuples began to flow
    since_start: float
    #: all units, senders first
    units: Mapping[str, UnitView] = field(default_factory=dict)
    hosts: tuple[HostUsage, ...] = ()
    #: places for more sub-units; and those of them that runs of lower priority would have to give first
    free_slots: int = 0
    obtainable: int = field(default=0, kw_only=True)
    #: names of the units that the policy may change, senders first
    managed: tuple[str, ...] = ()
    #: unit -> the units that send to it, each once
    senders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: why the guard refused what this policy wanted last; empty if it did not
    refusals: tuple[str, ...] = ()
    #: the objectives of the run, and how far each is kept
    objectives: tuple[ObjectiveStatus, ...] = ()
    #: the most slots that the run may hold at any time; None: as many as there are
    budget: int | None = None

    @property
    def held(self) -> int:
        """Return the slots that all units hold, by what they have now."""
        return sum(len(unit.samples) for unit in self.units.values())


@value_class(frozen=True)
class View(RunView):
    """The run at one moment, for the policy of one unit."""

    #: the unit that is judged
    unit: UnitView = field(kw_only=True)
