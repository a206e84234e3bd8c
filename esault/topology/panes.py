"""Panes of a window in a topology's calls, checked: which results it has, and what becomes of the one before."""

from __future__ import annotations

from typing import Any

from esault.errors import TopologyError
from esault.topology.arguments import check_seconds
from esault.topology.window import SessionWindow, WindowKind
from esault.value_class import value_class

__all__ = ["Panes", "checked_panes"]

EVENT, PROCESSING = "event", "processing"
UPDATES = ("drop", "accumulate", "discard", "retract")


@value_class(frozen=True)
class Panes:
    """Results that windows of a unit have, and what becomes of the one before, as its sub-units need to know it."""

    #: "drop": one result; "accumulate": each is of all tuples so far; "discard": of those since the one before; "retract": as
    #: "accumulate", and the one before is taken back
    updates: str = "drop"
    #: seconds behind its end for which a window takes late tuples
    allowed_lateness: float = 0.0
    #: a pane before the end each so many tuples
    early_count: int | None = None
    #: a pane before the end so many seconds after the first tuple that is in none yet, by the clock
    early_seconds: float | None = None
    #: the end of `allowed_lateness` has a pane of its own
    last_pane: bool = False
    #: tuples wait for the next pane and are processed in the order of their times
    ordered: bool = False


def checked_panes(where: str, given: Any, window: WindowKind) -> Panes | None:
    """Return what the options of a window say of its panes; None: nothing. Raises TopologyError."""
    if given.by not in (EVENT, PROCESSING):
        raise TopologyError(f"{where}: by={given.by!r}; windows close by 'event' or by 'processing' time")
    if given.updates not in UPDATES:
        raise TopologyError(
            f"{where}: updates={given.updates!r}; take 'accumulate' (each pane is of all tuples so far), 'discard' (of those since the "
            "pane before), 'retract' (as 'accumulate', with the pane before taken back), or 'drop' (one result)"
        )
    for argument in ("last_pane", "ordered"):
        if not isinstance(getattr(given, argument), bool):
            raise TopologyError(f"{where}: {argument}={getattr(given, argument)!r} must be True or False")
    panes = Panes(
        given.updates,
        0.0
        if given.allowed_lateness in (None, 0)
        else check_seconds(where, "allowed_lateness", given.allowed_lateness),
        given.early_count,
        None if given.early_seconds is None else check_seconds(where, "early_seconds", given.early_seconds),
        given.last_pane,
        given.ordered,
    )
    count = panes.early_count
    if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 1):
        raise TopologyError(f"{where}: early_count={count!r} must be a whole number of tuples from 1 on")
    said = [name for name in ("allowed_lateness", "early_count", "early_seconds", "last_pane") if getattr(panes, name)]
    if panes.updates == "drop" and said:
        raise TopologyError(
            f"{where}: with {' and '.join(said)} a window has several results; say what becomes of the one before: "
            "updates='accumulate', 'discard' or 'retract'"
        )
    if panes.updates != "drop" and not said:
        raise TopologyError(
            f"{where}: updates={panes.updates!r} is for windows with several results, and this one has one; say allowed_lateness=SECONDS, "
            "early_count=N or early_seconds=SECONDS with it"
        )
    if given.by == PROCESSING:
        wrong = [a for a in ("lateness", "idle", "ahead", "allowed_lateness") if getattr(given, a)]
        if any(time is not None for time in given.times):
            wrong.append("time")
        if wrong:
            raise TopologyError(
                f"{where}: by the clock a tuple is in the window of the moment and never late; leave {' and '.join(wrong)} out with "
                "by='processing'"
            )
    if given.by == EVENT and panes == Panes():  # windows as they are pay for nothing
        return None
    _check_kind(where, given.by, panes, window, said)
    return panes


def _check_kind(where: str, by: str, panes: Panes, window: WindowKind, said: list[str]) -> None:
    named = " and ".join([*said, *(["ordered"] if panes.ordered else []), *(["by"] if by == PROCESSING else [])])
    if not window.timed:
        raise TopologyError(
            f"{where}: {named} is for windows of time; a CountWindow closes with its last tuple, and CountWindow(size, every=n) tells "
            "of the last ones more often; leave it out"
        )
    if isinstance(window, SessionWindow):
        raise TopologyError(
            f"{where}: a session gets its tuples in the order of their times, when the watermark has passed them, so that two sessions "
            f"never turn out to be one and their objects need not be merged: there is nothing to tell before or behind that. Leave "
            f"{named} out, and allow for late tuples with lateness=SECONDS where event time starts"
        )
