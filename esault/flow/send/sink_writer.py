"""The writer of a sink: in the process of the unit before it, without a wire.

A sink takes rows over when they are written and makes them durable when it commits. So the rows of a root that
wait for a commit are one mark in the root's `d`: opened at the first write, XORed away by the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from inspect import iscoroutinefunction
from typing import Any

from esault.flow.channel.frame import Root
from esault.flow.channel.lineage import Lineage
from esault.flow.delivery.acks import Acks
from esault.flow.operators.user_error import UserError
from esault.flow.send.open_hooks import OpenHooks
from esault.flow.send.sink_call import Background
from esault.messages.delivery import Delivery
from esault.messages.settings import Settings
from esault.payload.portable import explain
from esault.topology.context import Context
from esault.topology.plan import SinkPlan
from esault.topology.sink import commits, commits_as_one

__all__ = ["SinkWriter"]

#: a commit takes at most this share of the time: the next one waits accordingly
COMMIT_SHARE = 0.2
#: seconds without a new row after which a sub-unit that has nothing else to do commits those that it has
QUIET = 0.005
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
        background: Background | None = None,
        wake: Callable[[], None] = lambda: None,
        opened: list[OpenHooks] | None = None,
    ) -> None:
        """`background` runs coroutines of the sink; `wake` is called from any thread when a hook is done; `opened` has those where one is not."""
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
        #: the driver commits
        self._by_driver = self._exactly and commits_as_one(plan.sink)
        #: whether it is written arrays where there are arrays
        self.takes_arrays = plan.sink.takes_arrays
        self._marks: dict[Root, int] = {}
        #: rows that were written, and of them those that are committed
        self._written = 0
        self.landed = 0
        self._commits = commits(plan.sink)
        #: number of a checkpoint -> the rows that were written by then
        self._written_by: dict[int, int] = {}
        self._rows = 0
        #: when the first and the newest of them were written, and when the last round began
        self._since = self._newest = self._began = 0.0
        self._epoch = 0
        self._not_before = 0.0
        #: a round of prepare and commit is under way
        self._round = False
        #: checkpoints whose handle is not there yet
        self.preparing = 0
        #: rows of a write before it is known how long one takes: one, where it may be long
        first = 1 if any(map(iscoroutinefunction, (plan.sink.write, plan.sink.write_columns))) else 0
        self.hooks = OpenHooks(plan.name, background, wake, clock, opened, first)
        #: rows that were written when `most_rows` was asked last
        self._asked = 0
        self._sink.context = context
        self.hooks.wait_for("open", partial(self._sink.open, context))

    def write(
        self, lineage: Lineage, keys: Sequence[Any], values: Sequence[Any], ids: Sequence[str] | None, now: float
    ) -> None:
        """Take rows. Raises SinkError."""
        most = self.hooks.most
        if most and len(keys) > most:
            for begin in range(0, len(keys), most):
                rows = slice(begin, begin + most)
                few = None if ids is None else ids[rows]
                self.hooks.write(
                    partial(self._sink.write_columns, keys[rows], values[rows], lineage.due, few), len(keys[rows])
                )
        else:
            self.hooks.write(partial(self._sink.write_columns, keys, values, lineage.due, ids), len(keys))
        self._written += len(keys)
        if not self._commits:
            self.landed = self._written
        if not self._marked:
            return
        if not self._rows:
            self._since = now
        self._rows += len(keys)
        self._newest = now
        if self._tracked and lineage.root not in self._marks:
            mark = self._random64()
            self._marks[lineage.root] = mark
            lineage.d ^= mark

    def most_rows(self, count: int) -> int:
        """Return how many rows to process next, where the last `count` brought forth what was written since then; 0: any number.

        What a slow sink has not taken yet a checkpoint would have to wait for.
        """
        written, self._asked = self._written - self._asked, self._written
        return max(1, self.hooks.most * count // max(written, count, 1)) if self.hooks.most else 0

    def due_at(self, idle: bool) -> float | None:
        """Return the time at which the next commit is due; None: nothing waits for one, or one is under way.

        `idle`: the sub-unit has nothing else to do; rows of a stream that is quiet wait for no others then.
        """
        if not self._rows or self._round:
            return None
        if self._rows >= MOST_ROWS:
            return 0.0
        every = self._settings.commit_every
        at = self._since if self._rows >= self._settings.commit_rows else self._since + every
        if idle:
            at = min(at, max(self._newest + QUIET, self._began + every))
        return max(at, self._not_before)

    @property
    def uncommitted(self) -> bool:
        """Return whether it has rows that are not durable, or hooks that are not done."""
        return self._rows > 0 or self.hooks.open

    def commit(self) -> None:
        """Make all written rows durable and visible, then tell the ledgers. Raises SinkError."""
        if not self._rows or self._round:
            return
        self._round = True
        self._rows = 0
        marks, self._marks = self._marks, {}
        prepare = partial(self._sink.prepare, self._epoch)
        self._began = self._clock()
        self.hooks.call("prepare", prepare, partial(self._commit, self._began, marks, self._written))

    def _commit(self, started: float, marks: dict[Root, int], written: int, handle: Any) -> None:
        commit = partial(self._sink.commit, self._epoch, handle)
        self.hooks.call("commit", commit, partial(self._committed, started, marks, written))

    def _committed(self, started: float, marks: dict[Root, int], written: int, result: Any) -> None:
        self._round = False
        self.landed = written
        self._epoch += 1
        for root, mark in marks.items():
            self._acks.add(root, 0, mark)
        ended = self._clock()
        if self._epoch > 1:  # the first loads libraries and makes folders: it does not tell what commits take
            self._not_before = ended + (ended - started) * (1 / COMMIT_SHARE - 1)

    def prepare(self, number: int, take: Callable[[Any], object]) -> None:
        """Make what was written durable and keep it from sight, as part of a checkpoint; `take` is given the handle.

        Raises SinkError, UserError.
        """
        self.preparing += 1
        self._written_by[number] = self._written
        self.hooks.call("prepare", partial(self._sink.prepare, number), partial(self._prepared, take))

    def _prepared(self, take: Callable[[Any], object], handle: Any) -> None:
        reason = explain(handle)
        if reason is not None:
            raise UserError(
                f"sink {self.name!r}, prepare: the handle that it returned is refused, and commit needs it: {reason}"
            )
        self.preparing -= 1
        take(handle)

    def complete(self, number: int, handle: Any, done: Callable[[Any], object]) -> None:
        """Show what was prepared, unless the driver does; `done` is called behind it. Raises SinkError."""
        if self._by_driver:
            self._completed(number, done, None)
        else:
            self.hooks.call(
                "commit", partial(self._sink.commit, number, handle), partial(self._completed, number, done)
            )

    def _completed(self, number: int, done: Callable[[Any], object], result: Any) -> None:
        # its handle covers what was prepared for those before it, too
        covered = [each for each in self._written_by if each <= number]
        self.landed = max([self.landed, *(self._written_by.pop(each) for each in covered)])
        done(result)

    def finish(self) -> None:
        """Commit what was written, and wait for all that is not done. Raises SinkError."""
        self.hooks.finish()
        if self._rows:
            self.commit()
            self.hooks.finish()

    def close(self) -> None:
        """The sub-unit stops; what is not done is given up."""
        self.hooks.abandon()
        self.hooks.wait_for("close", self._sink.close)
