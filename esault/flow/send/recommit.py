"""Commits in the driver's process: for the whole run, and after a death once more what belongs to a complete checkpoint.

Who prepared it may have died before it could.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter
from typing import Any

from esault.flow.send.sink_call import Background, call_sink, waited
from esault.messages.checkpoint import CompletedCheckpoint
from esault.topology.plan import SinkPlan
from esault.topology.sink import commits_as_one, forgets_always

__all__ = ["commit_for_run", "forget_staged", "go_back", "recommit"]


def _call(name: str, hook: str, background: Background, function: Any, *arguments: Any) -> None:
    call_sink(name, hook, lambda: waited(function(*arguments), background))


def commit_for_run(
    name: str, sink: Any, handles: Iterable[tuple[int, Any]], background: Background, whole: bool = True
) -> None:
    """Have one sink commit handles, each with the number of its checkpoint: those of one at once where it commits for the whole run.

    The older checkpoint comes first, of whatever sub-unit: a key may have moved in between. `whole`: others commit, too. Idempotent. Raises
    SinkError, UserError.
    """
    if not commits_as_one(sink):
        for number, handle in sorted(handles, key=itemgetter(0)) if whole else ():
            _call(name, "commit", background, sink.commit, number, handle)
        return
    by_number: dict[int, list[Any]] = {}
    for number, handle in handles:
        by_number.setdefault(number, []).append(handle)
    for number, all_of_it in sorted(by_number.items()):
        _call(name, "commit_all", background, sink.commit_all, number, tuple(all_of_it))


def recommit(
    kept: CompletedCheckpoint | None, sinks: Iterable[SinkPlan], background: Background, whole: bool = True
) -> None:
    """Commit all of a checkpoint; not `whole`: only what is committed for the whole run. Idempotent. Raises SinkError, UserError."""
    for name, sink in {sink.name: sink.sink for sink in sinks}.items():
        handles = [] if kept is None else [(each.number, each.handle) for each in kept.handles if each.sink == name]
        commit_for_run(name, sink, handles, background, whole)


def go_back(
    kept: CompletedCheckpoint | None, sinks: Iterable[SinkPlan], background: Background, back: bool = True
) -> None:
    """Commit what belongs to the checkpoint that all went back to, or that the run begins with, and let go of what was prepared beyond it.

    `back`: all went back, maybe to the beginning. Raises SinkError, UserError.
    """
    sinks = list(sinks)
    recommit(kept, sinks, background)
    for sink in sinks:
        handles = () if kept is None else tuple(each.handle for each in kept.handles if each.sink == sink.name)
        forget_staged(sink, handles, background, back or kept is not None)


def forget_staged(sink: SinkPlan, handles: tuple[Any, ...], background: Background, back: bool) -> None:
    """Have a sink let go of what it staged and will not commit; one that takes no handles is asked only where all go back or go on."""
    forget = sink.sink.forget_staged
    if forgets_always(sink.sink):
        _call(sink.name, "forget_staged", background, forget, handles)
    elif back:
        _call(sink.name, "forget_staged", background, forget)
