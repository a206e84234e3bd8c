"""The writer of a sink: in the process of the unit before it, without a wire.

A sink takes rows over when they are written and makes them durable when it commits. So the rows of a root that
wait for a commit are one mark in the root's `d`: opened at the first write, XORed away by the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from esault.flow.channel.frame import Root
from esault.flow.channel.lineage import Lineage
from esault.flow.delivery.acks import Acks
from esault.flow.operators.user_error import UserError
from esault.flow.send.sink_call import call_sink
from esault.messages.delivery import Delivery
from esault.messages.settings import Settings
from esault.payload.portable import explain
from esault.topology.context import Context
from esault.topology.plan import SinkPlan
from esault.topology.sink import commits

__all__ = ["SinkWriter"]

#: a commit takes at most this share of the time: the next one waits accordingly
COMMIT_SHARE = 0.2
#: rows that are committed whatever the commit costs
MOST_ROWS = 200_000


class SinkWriter:
    """One sink in one sub-unit: writes, rounds of prepare and commit, marks."""

    def __init__(
        self,
        plan: SinkPlan,
        context: Context,
        settings: Settings,
        acks: Acks,
        random64: Callable[[], int],
        clock: Callable[[], float],
    ) -> None:
        self.name = plan.name
        self._sink = plan.sink
        self._settings = settings
        self._acks = acks
        self._random64 = random64
        self._clock = clock
        #: with checkpoints rows are taken over when they are written, and committed with the checkpoint
        self._tracked = settings.delivery is not Delivery.NONE
        self._exactly = settings.delivery is Delivery.EXACTLY_ONCE
        self._marked = commits(plan.sink) and not self._exactly
        #: whether it is written arrays where there are arrays
        self.takes_arrays = plan.sink.takes_arrays
        self._marks: dict[Root, int] = {}
        self._rows = 0
        self._since = 0.0
        self._epoch = 0
        self._not_before = 0.0
        self._sink.context = context
        self._call("open", lambda: self._sink.open(context))

    def _call(self, hook: str, call: Callable[[], Any]) -> Any:
        return call_sink(self.name, hook, call)

    def write(
        self, lineage: Lineage, keys: Sequence[Any], values: Sequence[Any], ids: Sequence[str] | None, now: float
    ) -> None:
        """Take rows. Raises SinkError."""
        self._call("write", lambda: self._sink.write_columns(keys, values, lineage.due, ids))
        if not self._marked:
            return
        if not self._rows:
            self._since = now
        self._rows += len(keys)
        if self._tracked and lineage.root not in self._marks:
            mark = self._random64()
            self._marks[lineage.root] = mark
            lineage.d ^= mark

    @property
    def due_at(self) -> float | None:
        """Return the time at which the next commit is due; None: nothing waits for one."""
        if not self._rows:
            return None
        if self._rows >= MOST_ROWS:
            return 0.0
        at = self._since if self._rows >= self._settings.commit_rows else self._since + self._settings.commit_every
        return max(at, self._not_before)

    def commit(self) -> None:
        """Make all written rows durable and visible, then tell the ledgers. Raises SinkError."""
        if not self._rows:
            return
        started = self._clock()
        handle = self._call("prepare", lambda: self._sink.prepare(self._epoch))
        self._call("commit", lambda: self._sink.commit(self._epoch, handle))
        self._epoch += 1
        self._rows = 0
        marks, self._marks = self._marks, {}
        for root, mark in marks.items():
            self._acks.add(root, 0, mark)
        ended = self._clock()
        if self._epoch > 1:  # the first loads libraries and makes folders: it does not tell what commits take
            self._not_before = ended + (ended - started) * (1 / COMMIT_SHARE - 1)

    def prepare(self, number: int) -> Any:
        """Make what was written durable and keep it from sight, as part of a checkpoint. Raises SinkError, UserError."""
        handle = self._call("prepare", lambda: self._sink.prepare(number))
        reason = explain(handle)
        if reason is not None:
            raise UserError(
                f"sink {self.name!r}, prepare: the handle that it returned is refused, and commit needs it: {reason}"
            )
        return handle

    def complete(self, number: int, handle: Any) -> None:
        """Show what was prepared. Raises SinkError."""
        self._call("commit", lambda: self._sink.commit(number, handle))

    def close(self) -> None:
        """The sub-unit stops."""
        self._call("close", self._sink.close)
