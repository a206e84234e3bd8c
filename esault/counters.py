"""Counters and durations of a run: each number is declared once, here.

A sub-unit reports them, a unit adds them up, and the report, Prometheus and the table `windows` of the metrics show what is
declared; `esault status` and the live view show the usual ones, and those that mean trouble where there are any. So a new one is
a field here and a line where it is counted. A duration is a histogram; the report has its quantiles, Prometheus its buckets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from esault.histogram import Histogram, Snapshot
from esault.value_class import value_class

__all__ = [
    "Counter",
    "Duration",
    "RunCounts",
    "UnitCounts",
    "UnitDurations",
    "counted",
    "counter",
    "declared",
    "values",
]


@value_class(frozen=True)
class Counter:
    """One number of a unit, or of the run."""

    meaning: str
    #: what is counted: tuples, elements, seconds, ...
    unit: str
    #: it goes up and down, and a sub-unit that is over has none of it; else it only grows, and stays when a sub-unit ends
    gauge: bool = False
    #: more than 0 of it is something to look at: shown to people where there is any
    trouble: bool = False
    #: the table `windows` has a column of what came in each window
    in_windows: bool = False
    #: its name in Prometheus, where that is not "esault_" and the field's
    metric: str = ""


def counted(n: int, noun: str, plural: str = "") -> str:
    """Return a number with what it counts: "1 key", "1,204 keys"; `plural` where that is not the noun and an s."""
    return f"{n:,} {noun if n == 1 else plural or f'{noun}s'}"


def counter(meaning: str, unit: str = "tuples", *, default: float = 0, **more: Any) -> Any:
    """Declare a field of a dataclass as a counter; `more` as in `Counter`."""
    return field(default=default, metadata={"counter": Counter(meaning, unit, **more)})


@value_class(frozen=True)
class UnitCounts:
    """Counts of a unit, all its sub-units together, or of one sub-unit."""

    tuples_in: int = counter("Tuples that a bolt has processed.")
    tuples_out: int = counter("Tuples that a unit has emitted.")
    split_tuples: int = counter("Of those, tuples of hot keys that were split over several sub-units.")
    arrivals: int = counter("Tuples that a bolt has read from its channels; processed, dropped, or waiting.")
    dropped: int = counter("Tuples that came when a bounded inbox was full.", trouble=True)
    late: int = counter("Tuples whose window had closed; they are on the stream `late`.", trouble=True)
    errors: int = counter(
        "Tuples whose processing failed and was survived, by on_error.", trouble=True, in_windows=True
    )
    dead_letters: int = counter("Of those, tuples that were kept as dead letters.", trouble=True)
    skipped: int = counter(
        "Lines or records of a source that were left out or cut short, such as by `on_bad_line='skip'`.",
        "records",
        trouble=True,
    )
    state_lost: int = counter("Elements whose state died with a process.", "elements", trouble=True)
    dropped_frames: int = counter("Frames that were not for the sub-unit that got them.", "frames")
    busy_seconds: float = counter("Seconds in which sub-units were busy, added up.", "seconds", default=0.0)
    backlog: int = counter("Tuples that wait in inboxes.", gauge=True)
    keys_on_disk: int = counter("Keys whose state is on a disk, and not in memory.", "keys", gauge=True)


@value_class(frozen=True)
class RunCounts:
    """Counts of the batches that spouts have read, of the whole run or of one sub-unit."""

    roots_emitted: int = counter("Batches that spouts have read.", "batches")
    roots_acked: int = counter("Of those, batches of which all is processed and durable.", "batches")
    roots_replayed: int = counter("Batches that were emitted again.", "batches")
    roots_open: int = counter("Batches that are under way.", "batches", gauge=True)
    roots_lost: int = counter("Batches that were open when their spout's process died.", "batches")


@value_class(frozen=True)
class Duration:
    """One kind of durations of a unit, in seconds."""

    meaning: str
    #: its name in Prometheus, where that is not "esault_", the field's and "_seconds"
    metric: str = ""


def duration(meaning: str, metric: str = "") -> Any:
    """Declare a field of `UnitDurations`; the arguments are those of `Duration`."""
    return field(default_factory=Histogram, metadata={"duration": Duration(meaning, metric)})


@dataclass(eq=False)
class UnitDurations:
    """Durations of a unit, all its sub-units together, or of one sub-unit; seconds."""

    latency: Histogram = duration(
        "Of a bolt's tuples, from their sending to the end of their processing.", "esault_processing_seconds"
    )
    end_to_end: Histogram = duration(
        "From when a tuple was due at its source to the end of its processing, in units that no other one follows."
    )
    ack_latency: Histogram = duration(
        "Of a spout's batches, from their reading until all that came of them is processed and durable."
    )

    @classmethod
    def declared(cls) -> dict[str, Duration]:
        """Return all kinds by name, in the order of their declaration."""
        return {each.name: each.metadata["duration"] for each in fields(cls)}

    def __iter__(self) -> Iterator[tuple[str, Histogram]]:
        """Yield name and histogram of each kind that has been seen."""
        return ((name, times) for name in self.declared() if (times := getattr(self, name)).count)

    def snapshots(self) -> dict[str, Snapshot]:
        """Return plain values that can travel, by name."""
        return {name: times.snapshot() for name, times in self}

    def add(self, snapshots: Mapping[str, Snapshot]) -> None:
        """Add what others have measured, by name."""
        for name, snapshot in snapshots.items():
            getattr(self, name).merge(Histogram.from_snapshot(snapshot))


def declared(cls: type) -> dict[str, Counter]:
    """Return the counters among the fields of a dataclass, by name, in the order of their declaration."""
    return {each.name: each.metadata["counter"] for each in fields(cls) if "counter" in each.metadata}


def values(cls: type, counts: Any) -> dict[str, Any]:
    """Return the values that `counts` has for the counters of this class, by name."""
    return {name: getattr(counts, name) for name in declared(cls)}
