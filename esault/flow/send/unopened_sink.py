"""A sink whose hooks are called in a process that has not opened it: the driver's, for the whole run or after a death.

Most sinks that people write open a connection in `open`, keep it in an attribute, and take it from there in `commit`. In a process
that only commits there is no such attribute. So where a hook misses one, a copy of the sink is opened for it.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from types import TracebackType
from typing import Any

from esault.flow.operators.user_error import ConnectorError
from esault.flow.send.sink_call import Background, call_sink, waited
from esault.topology.context import Context
from esault.topology.sink import Sink

__all__ = ["UnopenedSink"]


class UnopenedSink:
    """Calls its hooks. A context manager: what it has opened is closed at the end of the block."""

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
        own = isinstance(error, AttributeError) and error.obj is self._sink
        return own and type(self._sink).open is not Sink.open

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
