"""The `self.emit` where several calls are open at once: it appends to what the call that emits has emitted.

Which call that is stands in a context variable, which a task hands on to the tasks it makes: so `asyncio.gather` and the like emit for the
call that waits for them, and one object may have several calls open, as with `shuffle()`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import Any

from esault.flow.operators.calls import Call
from esault.flow.operators.emitter import Emitter

__all__ = ["CURRENT", "CallEmitter"]

#: the call whose code runs; None: the engine calls a hook that does not wait
CURRENT: ContextVar[Call | None] = ContextVar("esault-call", default=None)


class CallEmitter(Emitter):
    """Columns for what is emitted outside of calls; each call has a list of its own."""

    def function(self) -> Callable[..., None]:
        main, emitter, current = self.outs[""], self, CURRENT.get

        def emit(self: Any, key: Any, value: Any, stream: str | None = None) -> None:
            call = current()
            if stream is not None:
                emitter.stream(stream)
            if not emitter.trusted:
                emitter.check(key, value)
            if call is None:
                out = main if stream is None else emitter.stream(stream)
                out.keys.append(key)
                out.values.append(value)
            elif call.over:
                raise RuntimeError(
                    f"{type(self).__name__}.emit: the call of {call.hook} for key {call.key!r} has returned, and its tuple is "
                    "acked; await what it starts before it returns"
                )
            else:
                call.emitted.append((stream or "", key, value))

        emit.__qualname__ = "Bolt.emit"
        return emit

    def rows(self) -> int:
        call = CURRENT.get()
        return super().rows() + (len(call.emitted) if call is not None else 0)

    @property
    def only_column(self) -> None:
        """None: rows are elsewhere too."""
        return None

    def marks(self) -> list[int]:
        call = CURRENT.get()
        return [*super().marks(), len(call.emitted) if call is not None else 0]

    def rewind(self, marks: Sequence[int]) -> None:
        super().rewind(marks)
        call = CURRENT.get()
        if call is not None:
            del call.emitted[marks[-1] :]

    def columns(
        self, calls: Iterable[Call], parent: Callable[[Call], str] | None
    ) -> dict[str, tuple[list[Any], list[Any], list[str]]]:
        """Keys, values and ids of what these calls emitted, by stream; `parent` gives what ids of a call's rows begin with, None: no ids."""
        columns: dict[str, tuple[list[Any], list[Any], list[str]]] = {}
        for call in calls:
            ids = self.named(parent(call), call.emitted) if parent is not None and call.emitted else []
            for i, (stream, key, value) in enumerate(call.emitted):
                column = columns.get(stream)
                if column is None:
                    column = columns[stream] = ([], [], [])
                column[0].append(key)
                column[1].append(value)
                if ids:
                    column[2].append(ids[i])
        return columns

    def named(self, parent: str, calls: list[tuple[str, Any, Any]]) -> list[str]:
        """Ids of what one call emitted: the parent's, and the ordinal of the emit in its stream."""
        counts: dict[str, int] = {}
        ids = []
        for stream, _, _ in calls:
            count = counts[stream] = counts.get(stream, -1) + 1
            ids.append(f"{parent}{self.outs[stream].tag}{count}")
        return ids
