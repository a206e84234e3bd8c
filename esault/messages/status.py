"""The report of a sub-unit on itself, a few times a second."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from esault.counters import RunCounts, UnitCounts, counter
from esault.messages.probe import KeyLoad, Usage
from esault.messages.splits import AssignedSplit
from esault.messages.user_metrics import MetricReading
from esault.value_class import value_class

__all__ = [
    "ChainedCounts",
    "MicroBatch",
    "Status",
    "SubUnitCounts",
]


@value_class(frozen=True)
class SubUnitCounts(UnitCounts, RunCounts):
    """Counts of one sub-unit, cumulative over its life unless said otherwise: what is shown of it, and what is not."""

    elements: int = counter("Elements with state.", "elements", gauge=True)
    backpressured: float = counter(
        "Of a spout: seconds in which it was not asked for more because its window was closed or a receiver full.",
        "seconds",
        default=0.0,
    )


@value_class(frozen=True)
class MicroBatch:
    """The window of a spout that has closed and waits to be released."""

    #: increases; -1: there is none
    window: int = -1
    #: (number, rows) of slices that were not released, by number
    slices: tuple[tuple[int, int], ...] = ()
    #: tuples that were released are not all processed yet
    under_way: bool = False


@value_class(frozen=True)
class ChainedCounts:
    """The counts of a bolt that is chained to a unit, in one of its sub-units; histograms as those of `Status`."""

    rows: SubUnitCounts
    durations: Mapping[str, Any] = field(default_factory=dict)


@value_class(frozen=True)
class Status:
    """The measurements of a sub-unit; sent a few times a second and once at the end."""

    incarnation: int
    now: float
    rows: SubUnitCounts
    #: snapshots of the histograms of `UnitDurations`, by name
    durations: Mapping[str, Any] = field(default_factory=dict)
    #: of a spout: position before which all is durable and the number of rows before it, packed; None without
    position: bytes | None = None
    #: of a spout that reads splits, without checkpoints: where each goes on should this sub-unit die
    splits: tuple[AssignedSplit, ...] = ()
    #: of a spout: rows read so far
    read: int = 0
    #: of a spout: (done, total) where the source knows
    progress: tuple[float, float] | None = None
    #: of a spout: tuples that are due and have not been read, where the source knows
    lag: int | None = None
    #: of a spout that collects windows
    micro_batch: MicroBatch | None = None
    #: what the process takes from its host, where the runtime can tell
    usage: Usage | None = None
    #: (seconds since the epoch, what it had taken then) of the start, in the first report behind it
    usage_at_start: tuple[float, Usage] | None = None
    #: of a bolt: where its tuples fall on the ring
    key_load: KeyLoad | None = None
    #: of a bolt that watermarks come to: up to when all has been seen to; None: nothing is known yet, or time is over
    watermark: float | None = None
    #: channel -> last seq sent / seen, so that a lost tail is found
    sent: Mapping[int, int] = field(default_factory=dict)
    seen: Mapping[int, int] = field(default_factory=dict)
    #: of the bolts that are chained to this unit, by name
    chained: Mapping[str, ChainedCounts] = field(default_factory=dict)
    #: of a spout: number and opening, seconds since the epoch, of the oldest root that is not processed; None: there is none
    oldest_root: tuple[int, float] | None = None
    #: metrics of the user's own
    metrics: tuple[MetricReading, ...] = ()
    #: hot keys that it splits now: unit that gets them -> key as text -> over how many sub-units
    split_keys: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    #: rows that its sinks have committed, by name of the sink
    landed: Mapping[str, int] = field(default_factory=dict)
    #: of these, those that a hook is under way of
    waiting_sinks: tuple[str, ...] = ()
