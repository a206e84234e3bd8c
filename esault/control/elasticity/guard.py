"""The guard around every policy: bounds, slots, cooldown, one change at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from esault.control.elasticity.action import Action, Advise, Merge, Rescale, Split
from esault.control.elasticity.view import View

__all__ = ["Guard", "Verdict"]


@dataclass(frozen=True)
class Verdict:
    """What may be done, and why the rest may not."""

    allowed: tuple[Action, ...] = ()
    refusals: tuple[str, ...] = ()


@dataclass(frozen=True)
class Guard:
    """`cooldown`: seconds between the end of a change and the beginning of the unit's next."""

    cooldown: float = 0.2

    def check(self, view: View, actions: Sequence[object]) -> Verdict:
        """Pass what can be done; what asks for more than there is, is cut to what there is, and that is said."""
        refusals: list[str] = []
        wanted: list[Split | Merge | Rescale] = []
        for action in actions:
            if isinstance(action, (Split, Merge, Rescale)):
                wanted.append(action)
            elif not isinstance(action, Advise):
                refusals.append(f"{action!r:.80} is no action")
        if not wanted:
            return Verdict((), tuple(refusals))
        unit = view.unit
        if unit.changing:
            return Verdict((), (*refusals, "a change of this unit is on"))
        if unit.changed_at is not None and view.now < unit.changed_at + self.cooldown:
            return Verdict((), (*refusals, f"the last change ended less than {self.cooldown:g} s ago"))
        allowed: list[Action] = []
        width, free = unit.width, view.free_slots
        least, most = unit.plan.min_parallelism, unit.plan.max_parallelism
        for action in wanted:
            if isinstance(action, Rescale):
                n = action.n
            else:
                n = width + (1 if isinstance(action, Split) else -1)
            if most is not None and n > most:
                refusals.append(f"{n} sub-units are more than its max_parallelism of {most}")
                n = most
            if n < least:
                refusals.append(f"{n} sub-units are fewer than its min_parallelism of {least}")
                n = least
            if n - width > free:
                refusals.append(f"{n} sub-units need {n - width} more slots, and {free} are free")
                n = width + free
            if isinstance(action, Rescale):
                if n == action.n or n != width:
                    allowed.append(replace(action, n=n))
            elif n != width:
                allowed.append(action)
            else:
                continue
            free -= max(0, n - width)
            width = n
        return Verdict(tuple(allowed), tuple(refusals))
