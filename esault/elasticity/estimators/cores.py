"""As many sub-units as there are cores to run them."""

from __future__ import annotations

from esault.elasticity.view import RunView, UnitView

__all__ = ["affordable"]

#: share of busy time on the processor from which a unit needs cores, not only slots
CPU_BOUND = 0.5
#: share of the host's processors from which there is no core to spare
HOST_FULL = 0.9
#: share of its time from which a sub-unit says something about what it needs
AT_WORK = 0.2


def affordable(view: RunView, unit: UnitView, wanted: int) -> int:
    """As many of the `wanted` sub-units as find a core, where the work is the processor's."""
    used = [(s.cpu, s.busy) for s in unit.samples if s.cpu is not None and s.busy > AT_WORK]
    if not used or not view.hosts or sum(c for c, _ in used) < CPU_BOUND * sum(b for _, b in used):
        return wanted
    spare = sum(h.cores * max(0.0, HOST_FULL - h.cpu) for h in view.hosts)
    per = max(0.2, sum(c for c, _ in used) / len(used))
    return min(wanted, unit.width + int(spare / per))
