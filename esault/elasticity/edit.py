"""From what a policy wants to the table that does it: all of its actions are one change."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from esault.elasticity.action import Action, Merge, Rescale, Split
from esault.elasticity.load_curve import LoadCurve, shared
from esault.elasticity.view import Sample
from esault.errors import UsageError
from esault.routing.table import OutputTable
from esault.routing.table_change import merged
from esault.value_class import value_class

__all__ = ["Edit", "edited"]


@value_class(frozen=True)
class Edit:
    """A table in which -1, -2 ... stand for sub-units to be made."""

    table: OutputTable
    news: int
    #: "split", "merge" or "rescale"
    kind: str


def edited(table: OutputTable, actions: Sequence[Action], samples: Sequence[Sample]) -> Edit:
    """Carry out splits and merges in order, or one rescale. Raises UsageError for what cannot be done to this table."""
    after = table.copy()
    news = 0
    for action in actions:
        if isinstance(action, Split):
            _check(after, action.sub_unit)
            news += 1
            low, high = max(after.ranges(action.sub_unit), key=lambda r: r[1] - r[0])
            if low == high:
                raise UsageError(f"sub-unit {action.sub_unit} owns a single place on the ring: it cannot be split")
            if action.at is not None and not low < action.at <= high:
                raise UsageError(
                    f"the range {low}..{high} of sub-unit {action.sub_unit} cannot be split at {action.at}"
                )
            after.split(low, -news, action.at)
        elif isinstance(action, Merge):
            _check(after, action.sub_unit)
            _check(after, action.into)
            after = _merged_into(after, action.sub_unit, action.into)
        elif isinstance(action, Rescale):
            if len(actions) > 1:
                raise UsageError("a rescale stands alone: it is a change of the whole table")
            after, news = _rescaled(after, action.n, samples)
        else:
            raise UsageError(f"{action!r} is no change of a table")
    after.version = table.version
    return Edit(after, news, _kind(actions))


def _kind(actions: Sequence[Action]) -> str:
    kinds = {type(a) for a in actions}
    return "split" if kinds == {Split} else "merge" if kinds == {Merge} else "rescale"


def _check(table: OutputTable, sub_unit: int) -> None:
    if sub_unit not in table.owners():
        raise UsageError(f"there is no sub-unit {sub_unit} (any more); there are: {table.owners()}")


def _merged_into(table: OutputTable, sub_unit: int, into: int) -> OutputTable:
    """Intervals beside `into` join it; what has it not for a neighbour joins the neighbour that is there."""
    after = table.copy()
    if len(table.owners()) == 1:
        raise UsageError(f"sub-unit {sub_unit} is the only one: it cannot be merged away")
    joined = True
    while joined:
        joined = False
        intervals = after.intervals()
        for (_, _, left), (low, _, right) in pairwise(intervals):
            if {left, right} == {sub_unit, into}:
                if right == sub_unit:
                    after.merge_left(low)
                else:
                    after.merge_right(intervals[[i[0] for i in intervals].index(low) - 1][0])
                joined = True
                break
    return merged(after, sub_unit) if sub_unit in after.owners() else after


def _rescaled(table: OutputTable, n: int, samples: Sequence[Sample]) -> tuple[OutputTable, int]:
    owners = table.owners()
    if n < 1:
        raise UsageError("a unit needs one sub-unit at least")
    curve = LoadCurve.of([s for s in samples if s.sub_unit in owners])
    loads = {o: sum(curve.load(*piece) for piece in table.ranges(o)) for o in owners}
    # Those with the least to give away leave; among equals the youngest.
    kept = sorted(owners, key=lambda o: (-round(loads[o], 6), o))[: min(n, len(owners))]
    kept = [o for o in owners if o in kept]
    news = [-1 - i for i in range(n - len(kept))]
    return shared(table, curve, kept, news), len(news)
