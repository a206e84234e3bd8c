"""Commits in the driver's process: for the whole run, and after a death once more what belongs to a complete checkpoint.

Who prepared it may have died before it could.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import replace
from operator import itemgetter
from types import TracebackType
from typing import Any

from esault.flow.operators.user_error import ConnectorError
from esault.flow.send.sink_call import Background, call_sink, waited
from esault.messages.checkpoint import CompletedCheckpoint
from esault.topology.context import Context
from esault.topology.plan import SinkPlan
from esault.topology.sink import Sink, commits_as_one, forgets_always

__all__ = ["UnopenedSink", "commit_for_run", "forget_staged", "go_back", "recommit"]


def commit_for_run(
    name: str,
    sink: Any,
    handles: Iterable[tuple[int, Any]],
    background: Background,
    whole: bool = True,
    context: Context | None = None,
) -> None:
    """Have one sink commit handles, each with the number of its checkpoint: those of one at once where it commits for the whole run.

    The older checkpoint comes first, of whatever sub-unit: a key may have moved in between. `whole`: others commit, too; `context`: of
    the run. Idempotent. Raises SinkError, UserError.
    """
    with UnopenedSink(name, sink, background, context) as hooks:
        if not commits_as_one(sink):
            for number, handle in sorted(handles, key=itemgetter(0)) if whole else ():
                hooks.call("commit", number, handle)
            return
        by_number: dict[int, list[Any]] = {}
        for number, handle in handles:
            by_number.setdefault(number, []).append(handle)
        for number, all_of_it in sorted(by_number.items()):
            hooks.call("commit_all", number, tuple(all_of_it))


def recommit(
    kept: CompletedCheckpoint | None,
    sinks: Iterable[SinkPlan],
    background: Background,
    whole: bool = True,
    context: Context | None = None,
) -> None:
    """Commit all of a checkpoint; not `whole`: only what is committed for the whole run. Idempotent. Raises SinkError, UserError."""
    for name, sink in {sink.name: sink.sink for sink in sinks}.items():
        handles = [] if kept is None else [(each.number, each.handle) for each in kept.handles if each.sink == name]
        commit_for_run(name, sink, handles, background, whole, context)


def go_back(
    kept: CompletedCheckpoint | None,
    sinks: Iterable[SinkPlan],
    background: Background,
    back: bool = True,
    context: Context | None = None,
) -> None:
    """Commit what belongs to the checkpoint that all went back to, or that the run begins with, and let go of what was prepared beyond it.

    `back`: all went back, maybe to the beginning. Raises SinkError, UserError.
    """
    sinks = list(sinks)
    recommit(kept, sinks, background, context=context)
    for sink in sinks:
        handles = () if kept is None else tuple(each.handle for each in kept.handles if each.sink == sink.name)
        forget_staged(sink, handles, background, back or kept is not None, context)


def forget_staged(
    sink: SinkPlan, handles: tuple[Any, ...], background: Background, back: bool, context: Context | None = None
) -> None:
    """Have a sink let go of what it staged and will not commit; one that takes no handles is asked only where all go back or go on."""
    with UnopenedSink(sink.name, sink.sink, background, context) as hooks:
        if forgets_always(sink.sink):
            hooks.call("forget_staged", handles)
        elif back:
            hooks.call("forget_staged")


class UnopenedSink:
    """Calls the hooks of a sink in a process that has not opened it: the driver's, for the whole run or after a death.

    Most sinks that people write open a connection in `open`, keep it in an attribute, and take it from there in `commit`; or make a folder
    there, and list it in `forget_staged`. In a process that has not opened the sink there is no such attribute, and on Spark no such
    folder yet. So where a hook misses one, a copy of the sink is opened for it. A context manager: what it has opened is closed at
    the end of the block.
    """

    def __init__(self, name: str, sink: Any, background: Background, context: Context | None = None) -> None:
        """`context`: of the run; the sink's has its own name as the unit."""
        self._name = name
        self._sink = sink
        self._background = background
        self._context = replace(context or Context(name), unit=name)
        self._opened: Any = None

    def call(self, hook: str, *arguments: Any) -> None:
        """Call a hook and wait for it. Raises SinkError, ConnectorError."""
        try:
            self._call(self._opened or self._sink, hook, *arguments)
        except ConnectorError as error:
            if self._opened is not None or not self._misses_what_open_makes(error.__cause__):
                raise
            opened = copy.copy(self._sink)
            opened.context = self._context
            self._call(opened, "open", self._context)
            self._opened = opened
            self._call(opened, hook, *arguments)

    def _misses_what_open_makes(self, error: BaseException | None) -> bool:
        missing = isinstance(error, FileNotFoundError) or (
            isinstance(error, AttributeError) and error.obj is self._sink
        )
        return missing and type(self._sink).open is not Sink.open

    def _call(self, sink: Any, hook: str, *arguments: Any) -> None:
        call_sink(self._name, hook, lambda: waited(getattr(sink, hook)(*arguments), self._background))

    def __enter__(self) -> UnopenedSink:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            self._call(opened, "close")
