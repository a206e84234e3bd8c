"""Profiles of what units did in a run, and the model that follows: what a tuple takes, and how many come out for one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from esault.sim.model import Operator, Source

__all__ = ["BETWEEN", "UnitProfile", "modelled"]

#: share by which what comes may differ from what was sent, before a step between the two is modelled
ALIKE = 0.01
#: in the name of a part between two units, where function steps leave tuples out or make more of them
BETWEEN = " -> "
#: seconds that such a step takes: it runs in its sender's process, whose time is counted there
NOTHING = 1e-9


@dataclass(frozen=True)
class UnitProfile:
    """All that the sub-units of a unit did together. Counts are tuples."""

    name: str
    #: "spout" or "bolt"
    kind: str
    #: names of the units that send to it
    senders: tuple[str, ...] = ()
    arrivals: float = 0.0
    processed: float = 0.0
    emitted: float = 0.0
    #: seconds of processing, without those of bolts in the same process
    busy: float = 0.0
    #: sub-units at the start, and how few and many it may have; None: as many as there are slots
    width: int = 1
    least: int = 1
    most: int | None = None

    @property
    def service(self) -> float:
        """Seconds that a tuple takes; nothing must have been processed."""
        return max(NOTHING, self.busy / self.processed)


def modelled(profiles: Iterable[UnitProfile], rates: Mapping[str, Any]) -> list[Source | Operator]:
    """Return the parts of a model, senders first, under the rate of each spout. Units that got nothing are left out."""
    parts: list[Source | Operator] = []
    emitted: dict[str, float] = {}
    for each in profiles:
        emitted[each.name] = each.emitted
        if each.kind == "spout":
            parts.append(Source(each.name, rates[each.name]))
            continue
        senders = tuple(name for name in each.senders if any(name == part.name for part in parts))
        sent = sum(emitted[name] for name in senders)
        if not each.processed or not sent:
            continue
        if abs(each.arrivals / sent - 1) > ALIKE:
            step = f"{'+'.join(senders)}{BETWEEN}{each.name}"
            parts.append(Operator(step, senders, NOTHING, most=1, selectivity=each.arrivals / sent))
            senders = (step,)
        parts.append(
            Operator(
                each.name,
                senders,
                each.service,
                width=each.width,
                least=min(each.least, each.width),
                most=None if each.most is None else max(each.most, each.width),
                selectivity=each.emitted / each.processed,
            )
        )
    return parts
