"""The guard around every policy: bounds, slots, cooldown, one change at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from esault.elasticity.action import Action, Advise, Merge, Migrate, Rescale, Split, Throttle
from esault.elasticity.view import View
from esault.value_class import value_class

__all__ = ["Guard", "Verdict"]


@value_class(frozen=True)
class Verdict:
    """The changes that are allowed, and the reasons against the rest."""

    #: changes of the table
    allowed: tuple[Action, ...] = ()
    refusals: tuple[str, ...] = ()
    throttles: tuple[Throttle, ...] = ()
    moves: tuple[Migrate, ...] = ()
    #: slots that the changes take, and those that they would take if other runs had given them
    growth: int = 0
    awaited: int = 0


@value_class(frozen=True)
class Guard:
    """`cooldown`: seconds between the end of a change and the beginning of the unit's next."""

    cooldown: float = 0.2

    def check(self, view: View, actions: Sequence[object]) -> Verdict:
        """Pass what can be done; what asks for more than there is, is cut to what there is, and that is said."""
        refusals: list[str] = []
        wanted: list[Split | Merge | Rescale] = []
        throttles: list[Throttle] = []
        moves: list[Migrate] = []
        for action in actions:
            if nonsense := _nonsense(action):
                refusals.append(nonsense)
            elif isinstance(action, (Split, Merge, Rescale)):
                wanted.append(action)
            elif isinstance(action, Throttle):
                if 0 <= action.rate < float("inf") and 0 < action.seconds < float("inf"):
                    throttles.append(action)
                else:
                    refusals.append(f"{action.rate:g} tuples/s for {action.seconds:g} s is no throttle")
            elif isinstance(action, Migrate):
                refusal = _refusal(view, action)
                if refusal:
                    refusals.append(refusal)
                else:
                    moves.append(action)
            elif not isinstance(action, Advise):
                refusals.append(f"{action!r:.80} is no action")
        unit = view.unit
        slowed = tuple(throttles)
        if not wanted and not moves:
            return Verdict((), tuple(refusals), slowed)
        if unit.plan.kind == "spout":
            return Verdict((), (*refusals, f"{unit.name!r} is a spout, which a policy can throttle only"), slowed)
        if unit.changing:
            return Verdict((), (*refusals, "a change of this unit is on"), slowed)
        if unit.changed_at is not None and view.now < unit.changed_at + self.cooldown:
            return Verdict((), (*refusals, f"the last change ended less than {self.cooldown:g} s ago"), slowed)
        if moves:
            if wanted or len(moves) > 1:
                refusals.append("one change of a unit at a time: a move stands alone")
            return Verdict((), tuple(refusals), slowed, tuple(moves[:1]), 1)
        allowed: list[Action] = []
        width, copies = unit.width, unit.plan.replicas
        free, coming = (view.free_slots - view.obtainable) // copies, view.obtainable // copies
        awaited = 0
        least, most = unit.plan.min_parallelism, unit.plan.max_parallelism
        for action in wanted:
            if isinstance(action, Rescale):
                n = action.n
            else:
                n = width + (1 if isinstance(action, Split) else -1)
            if most is not None and n > most:
                refusals.append(f"{n} sub-unit{'s are' if n != 1 else ' is'} more than its max_parallelism of {most}")
                n = most
            if n < least:
                refusals.append(f"{n} sub-unit{'s are' if n != 1 else ' is'} fewer than its min_parallelism of {least}")
                n = least
            if free < n - width <= free + coming:
                awaited += n - width - free
                coming -= n - width - free
                n = width + free
            if n - width > free:
                needed = (n - width) * copies
                refusals.append(
                    f"{n} sub-unit{'s need' if n != 1 else ' needs'} {needed} more slot{'s' * (needed != 1)}, and {view.free_slots} are free"
                    + (f" within the budget of {view.budget}" if view.budget is not None else "")
                )
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
        growth = max(0, width - unit.width) * copies
        return Verdict(tuple(allowed), tuple(refusals), slowed, (), growth, awaited * copies)


def _nonsense(action: object) -> str:
    """Return the reason why an action of a policy of one's own cannot be carried out at all; empty if it may be."""
    reason: object = getattr(action, "reason", "")
    if isinstance(action, Action) and not isinstance(reason, str):
        return f"{action!r:.80}: its reason is no text"
    number = action.n if isinstance(action, Rescale) else action.at if isinstance(action, Split) else None
    if number is not None and not hasattr(type(number), "__index__"):
        return f"{action!r:.80}: {number!r} is no whole number"
    return ""


def _refusal(view: View, action: Migrate) -> str:
    """Return the reason why a sub-unit cannot go there; empty if it can."""
    sample = next((s for s in view.unit.samples if s.sub_unit == action.sub_unit), None)
    if sample is None:
        return f"there is no sub-unit {action.sub_unit} (any more)"
    if action.host not in {h.name for h in view.hosts}:
        return f"there is no host {action.host!r}; there are: {', '.join(h.name for h in view.hosts) or 'none'}"
    if action.host == sample.host:
        return f"sub-unit {action.sub_unit} is on {action.host} already"
    return "" if view.free_slots > view.obtainable else "a move needs a free slot"
