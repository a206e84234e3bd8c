"""Measurements of a unit in a window that CRAA and its baselines read: rates, a shared buffer, and what one sub-unit can process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from esault.elasticity.estimators.due import due
from esault.elasticity.view import RunView, UnitView
from esault.value_class import value_class

__all__ = ["Flow", "Flows"]

#: a buffer of unknown size is what came of late in so many seconds: no tuple should wait longer. It is not what the
#: unit can process: with that the size would change at every decision, and the next would undo it
BUFFER_SECONDS = 0.5
#: what a window weighs, a window later, in the ratios that the paper has as constants
KEPT = 0.9


@value_class(frozen=True)
class Flow:
    """One bolt in one window. Rates are tuples a second; buffers are tuples."""

    name: str
    seconds: float
    #: I: what came, also what was dropped
    arrivals: float
    #: PN
    width: int
    #: P_unit; None until a tuple was processed
    one: float | None
    #: CR: tuples emitted for one processed
    ratio: float
    #: b: tuples that came for one that was sent to it
    share: float
    emitted: float
    #: in the buffer when the window opened, and at its end (BO)
    before: float
    waiting: float
    #: BS
    size: float
    #: what spouts sent, of `arrivals`
    sourced: float
    #: bolts that send to it
    senders: tuple[str, ...]
    #: it has spouts before it
    head: bool
    least: int
    #: None: as many as there are free slots
    most: int | None
    #: the policy may change it now
    free: bool

    @property
    def rate(self) -> float:
        """P; 0 while it is unknown."""
        return (self.one or 0.0) * self.width

    def within(self, change: int, slots: int) -> int:
        """The change cut to what the unit's limits and the free slots allow."""
        most = self.width + slots if self.most is None else min(self.most, self.width + slots)
        return max(min(change, max(0, most - self.width)), min(0, self.least - self.width))


@dataclass
class _Known:
    one: float | None = None
    processed: float = 0.0
    emitted: float = 0.0
    came: float = 0.0
    sent: float = 0.0
    arrived: float = 0.0
    seconds: float = 0.0


class Flows:
    """Reads views, window by window, and keeps what is known of a unit when a window says nothing of it."""

    def __init__(self, buffer_default: float = 0.0, count_due: bool = True, a_window_later: bool = True) -> None:
        """`a_window_later`: what is emitted in a window comes in the next, so that is what is compared for `Flow.share`."""
        self._buffer = buffer_default
        self._due = count_due
        self._later = a_window_later
        self._known: dict[str, _Known] = {}
        self._emitted: dict[str, float] = {}

    def read(self, view: RunView) -> dict[str, Flow]:
        """All bolts, senders first; empty until all units have a window."""
        if any(u.window is None for u in view.units.values()):
            return {}
        flows = {n: self._flow(u, view) for n, u in view.units.items() if u.plan.kind == "bolt"}
        self._emitted = {n: u.window.emitted for n, u in view.units.items() if u.window is not None}
        return flows

    def _flow(self, unit: UnitView, view: RunView) -> Flow:
        window = unit.window
        assert window is not None
        known = self._known.setdefault(unit.name, _Known())
        if window.service:
            known.one = 1.0 / window.service
        known.processed = KEPT * known.processed + window.processed
        known.emitted = KEPT * known.emitted + window.emitted
        sends = view.senders.get(unit.name, ())
        bolts = tuple(s for s in sends if s in view.units and view.units[s].plan.kind == "bolt")
        spouts = [s for s in sends if s not in bolts]
        sourced = _emitted(view.units, spouts)
        if not self._later or set(bolts) <= self._emitted.keys():
            sent = sum(self._emitted[b] for b in bolts) if self._later else _emitted(view.units, bolts)
            known.came = KEPT * known.came + window.arrivals
            known.sent = KEPT * known.sent + sourced + sent
        share = known.came / known.sent if known.sent > 0 else 1.0
        seconds, came, waiting, before = window.seconds, window.arrivals, window.waiting, window.waiting_before
        if spouts and not bolts:
            held = due(view.units, unit) if self._due else None
            if held is not None:
                came, waiting, before = came + held.arrivals, waiting + held.waiting, before + held.waiting_before
            sourced = came
        else:
            sourced *= share
        known.arrived = KEPT * known.arrived + max(0.0, came)
        known.seconds = KEPT * known.seconds + seconds
        if unit.buffer is not None:
            size = unit.buffer
        else:
            # one sub-unit is there at least, whatever comes
            size = self._buffer or BUFFER_SECONDS * max(known.arrived / known.seconds, known.one or 0.0)
        return Flow(
            name=unit.name,
            seconds=seconds,
            arrivals=max(0.0, came) / seconds,
            width=unit.width,
            one=known.one,
            ratio=known.emitted / known.processed if known.processed > 0 else 1.0,
            share=share,
            emitted=window.emitted / seconds,
            before=before,
            waiting=waiting,
            size=size,
            sourced=max(0.0, sourced) / seconds,
            senders=bolts,
            head=bool(spouts),
            least=unit.plan.min_parallelism,
            most=unit.plan.max_parallelism,
            free=unit.name in view.managed and not unit.changing,
        )


def _emitted(units: Mapping[str, UnitView], names: tuple[str, ...] | list[str]) -> float:
    windows = [units[n].window for n in names if n in units]
    return sum(w.emitted for w in windows if w is not None)
