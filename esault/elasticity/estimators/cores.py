"""As many sub-units as there are cores to run them."""

from __future__ import annotations

from esault.elasticity.view import RunView, Sample, UnitView

__all__ = ["CPU_BOUND", "HEAVY", "affordable", "need", "waits"]

#: share of the time at work on the processor from which a unit needs cores, not only slots
CPU_BOUND = 0.5
#: share of the host's processors from which there is no core to spare
HOST_FULL = 0.9
#: share of its time from which a sub-unit says something about what it needs
AT_WORK = 0.2
#: processors that a new sub-unit needs at least
LEAST = 0.2
#: more that a unit must get done for a sub-unit that finds a part of a core ...
WORTH = 0.35
#: ... and the seconds that a tuple must take: another sub-unit costs each some microseconds of routing, frames and wake-ups
HEAVY = 30e-6


def affordable(view: RunView, unit: UnitView, wanted: int, service: float = 0.0) -> int:
    """As many of the `wanted` sub-units as find a core, where the work is the processor's; `service`: seconds a tuple, if known.

    A sub-unit on a host that is full is busy for longer than it computes, as is one that waits for a service. The system knows which of
    the two it is: it counts how long a process could have run and had no processor. Both together are what the sub-unit needs.

    Where tuples are heavy another sub-unit takes no more processor time. Then it is enough that the run's own processes leave a core: what
    other programs take of it the system divides among all, and two sub-units get more of that than one.
    """
    needs = _needs(unit)
    if not needs or not view.hosts or _idle_at_work(needs):
        return wanted
    spare = sum(h.cores * max(0.0, HOST_FULL - h.cpu) for h in view.hosts)
    if service >= HEAVY:
        own = sum(need(s) or 0.0 for each in view.units.values() for s in each.samples)
        spare = max(spare, HOST_FULL * sum(h.cores for h in view.hosts) - own)
    more = spare / max(LEAST, sum(c for c, _ in needs) / len(needs))
    # Half a core beside a unit of one sub-unit is half as much again; beside one of ten it is not worth what a change costs.
    part = service >= HEAVY and more % 1.0 >= WORTH * (unit.width + int(more))
    return min(wanted, unit.width + int(more) + part)


def waits(unit: UnitView) -> bool:
    """Return whether the unit is known to wait for most of its time at work, as for a service: then its work takes no cores."""
    needs = _needs(unit)
    return bool(needs) and _idle_at_work(needs)


def _needs(unit: UnitView) -> list[tuple[float, float]]:
    """Return processors, and the share of its time at work, of each sub-unit that is."""
    # `busy` counts user code alone: one that reads, unpacks or closes windows may need a whole core beside it.
    return [
        (each, at_work)
        for s in unit.samples
        if (each := need(s)) is not None and (at_work := max(s.busy, each)) > AT_WORK
    ]


def _idle_at_work(needs: list[tuple[float, float]]) -> bool:
    return sum(c for c, _ in needs) < CPU_BOUND * sum(w for _, w in needs)


def need(sample: Sample) -> float | None:
    """Processors that it would use if there were enough of them; None where that is not known."""
    return None if sample.cpu is None else sample.cpu + (sample.cpu_wait or 0.0)
