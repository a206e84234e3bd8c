"""Features of a window for the learners: the run's state, the features of a configuration in it, and the four targets.

The paper lists no features. Here they are the sources' rate and, for each unit, its width, its load (offered rate x service /
width, which holds selectivity and service time) and the work that waits, in seconds: with the load, what was learnt at one
rate and width says something of others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from esault.elasticity.policies.orientstream.configuration import Configuration, query_latency, source_latency
from esault.elasticity.view import RunView, UnitView, UnitWindow
from esault.value_class import value_class

__all__ = ["BLIND", "TARGETS", "Remembered", "UnitState", "WindowState", "features", "scales", "window_state"]

TARGETS = ("cpu", "memory", "latency", "throughput")
#: a closed-loop source that may not read gives no measure of how much more would come: so many times as much is assumed
BLIND = 2.0
#: share of the newest window in the mean of service times and selectivities
NEWEST = 0.3
#: tuples below which a window says nothing of service and selectivity
FEWEST = 10
#: busy sub-units below which the use of processors is no ratio
LEAST_WORK = 0.01
#: largest served share that is learnt: beyond it a backlog is worked off
MOST_SERVED = 1.5


@value_class(frozen=True)
class UnitState:
    """One unit that may be changed."""

    width: int
    #: tuples that come to it for each tuple of the sources
    visits: float
    #: seconds a tuple takes one sub-unit; None while unknown
    service: float | None
    #: tuples that waited at the start and at the end
    waiting_before: float
    waiting: float
    #: least and most sub-units
    least: int
    most: int


@value_class(frozen=True)
class WindowState:
    """The run in one window, as a policy needs it."""

    #: tuples a second that the sources offered, read or not
    rate: float
    units: Mapping[str, UnitState]
    #: places for sub-units, taken and free
    slots: int
    free: int
    #: what was measured, by TARGETS: share of all slots busy; share of memory taken; seconds; share of what was offered
    measured: Mapping[str, float]

    @property
    def configuration(self) -> Configuration:
        """Return the configuration in force."""
        return Configuration(tuple((name, unit.width) for name, unit in self.units.items()))

    @property
    def known(self) -> bool:
        """Return whether a unit's service time is known; one whose is not keeps its width."""
        return any(unit.service is not None for unit in self.units.values())

    def demand(self, name: str, rate: float) -> float:
        """Sub-units of the unit that are kept busy when the sources offer `rate` tuples a second."""
        unit = self.units[name]
        return rate * unit.visits * (unit.service or 0.0)


@dataclass
class Remembered:
    """Means over windows, by unit: seconds a tuple, and tuples in for each tuple its senders processed."""

    service: dict[str, float] = field(default_factory=dict)
    ratio: dict[str, float] = field(default_factory=dict)
    #: processed and busy in windows that had too few tuples by themselves
    few: dict[str, tuple[float, float]] = field(default_factory=dict)

    def learn(self, name: str, window: UnitWindow, sent: float) -> None:
        """One window of one unit, whose senders processed `sent` tuples in it."""
        processed, busy = self.few.pop(name, (0.0, 0.0))
        processed, busy = processed + window.processed, busy + window.busy
        if processed >= FEWEST:
            self.service[name] = _towards(self.service.get(name), busy / processed)
        else:
            self.few[name] = (processed, busy)
        if sent >= FEWEST:
            self.ratio[name] = _towards(self.ratio.get(name), window.arrivals / sent)


def _towards(old: float | None, new: float) -> float:
    return new if old is None else old + NEWEST * (new - old)


def features(
    state: WindowState, configuration: Configuration, rate: float, waiting: Mapping[str, float]
) -> dict[str, float]:
    """Return the features of a configuration when sources offer `rate` tuples a second and `waiting` tuples wait, by unit."""
    found = {"rate": rate}
    for name, width in configuration.widths:
        found[f"width {name}"] = width
        found[f"load {name}"] = state.demand(name, rate) / width
        found[f"wait {name}"] = waiting[name] * (state.units[name].service or 0.0) / width
    return found


def scales(state: WindowState, configuration: Configuration, rate: float) -> Mapping[str, float]:
    """Return the divisor of each target before it is learnt; a prediction is multiplied by it.

    None of the learners goes beyond what it has seen, so a width never tried would look as dear as the nearest that was. Use of
    processors is learnt by the work that is offered, memory by the sub-unit, throughput by what is offered (as a share).
    """
    work = sum(state.demand(name, rate) for name, _ in configuration.widths)
    return {
        "cpu": max(work, LEAST_WORK) / state.slots,
        "memory": configuration.parallelism / state.slots,
        "latency": 1.0,
        "throughput": 1.0,
    }


def window_state(view: RunView, remembered: Remembered) -> WindowState | None:
    """The state in the window that has just ended; None where a unit has none yet."""
    if not view.managed or any(unit.window is None for unit in view.units.values()):
        return None
    windows = {name: unit.window for name, unit in view.units.items() if unit.window is not None}
    read, rate = _offered(view, windows)
    visits: dict[str, float] = {}
    for name, window in windows.items():
        senders = view.senders.get(name, ())
        if not senders:
            visits[name] = window.processed / read if read > 0 else 1.0
            continue
        remembered.learn(name, window, sum(windows[s].processed for s in senders))
        visits[name] = remembered.ratio.get(name, 1.0) * sum(visits[s] for s in senders)
    units = {}
    for name in view.managed:
        unit, window = view.units[name], windows[name]
        most = unit.plan.max_parallelism or unit.width + view.free_slots
        units[name] = UnitState(
            unit.width,
            visits[name],
            remembered.service.get(name),
            window.waiting_before,
            window.waiting,
            unit.plan.min_parallelism,
            max(most, unit.plan.min_parallelism),
        )
    slots = max(1, view.free_slots + sum(unit.width for unit in units.values()))
    measured = {
        "cpu": sum(windows[n].busy / max(1e-9, windows[n].seconds) for n in units) / slots,
        "memory": _memory(view, slots),
        "latency": _latency(view, windows),
        "throughput": _served(units, windows, rate),
    }
    return WindowState(rate, units, slots, view.free_slots, measured)


def _offered(view: RunView, windows: Mapping[str, UnitWindow]) -> tuple[float, float]:
    """Tuples that the sources read in the window; tuples a second that they would have, had nothing held them back."""
    read = rate = 0.0
    for name, window in windows.items():
        if view.senders.get(name):
            continue
        read += window.processed
        done = window.processed / max(1e-9, window.seconds)
        # A source that catches up is to go on doing so.
        rate += done * BLIND if window.blind else max(done, window.offered)
    return read, rate


def _memory(view: RunView, slots: int) -> float:
    """Share of the hosts' memory that the units' sub-units take; of the slots, where memory is not measured."""
    total = sum(host.memory_total for host in view.hosts)
    samples = [s for name in view.managed for s in view.units[name].samples]
    taken = sum(s.memory for s in samples)
    if total > 0 and taken > 0:
        return taken / total
    return sum(view.units[name].width for name in view.managed) / slots


def _latency(view: RunView, windows: Mapping[str, UnitWindow]) -> float:
    """(1) and (2): mean over a unit's instances, summed along the way, the largest over the sources; with the wait at a source."""
    through: dict[str, float] = {}
    for name, unit in view.units.items():
        before = max((through[s] for s in view.senders.get(name, ())), default=0.0)
        through[name] = before + _own_latency(unit, windows[name])
    return query_latency(through.values())


def _own_latency(unit: UnitView, window: UnitWindow) -> float:
    per_second = window.processed / max(1e-9, window.seconds)
    if unit.plan.kind == "spout":
        lag = window.lag or 0.0
        return lag / per_second if per_second > 0 else (window.seconds if lag > 0 else 0.0)
    told = [s.latency for s in unit.samples if s.latency is not None]
    mean = (window.waiting_before + window.waiting) / 2
    if per_second <= 0:
        return window.seconds if mean > 0 else 0.0
    # What is told may be old, and is of one moment; what waits on average says how long over the whole window.
    waited = mean / per_second + (window.service or 0.0)
    return max(waited, source_latency(told)) if told else waited


def _served(units: Mapping[str, UnitState], windows: Mapping[str, UnitWindow], rate: float) -> float:
    """Smallest share over the units of what was processed, of what the sources offered times the visits."""
    shares: Sequence[float] = [
        windows[name].processed / (rate * unit.visits * windows[name].seconds)
        for name, unit in units.items()
        if rate * unit.visits * windows[name].seconds >= FEWEST
    ]
    return min(MOST_SERVED, min(shares, default=1.0))
