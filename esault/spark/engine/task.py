"""One task of a unit with state: restored, given a batch of frames, kept.

Its objects stay in the worker from batch to batch. Which version of the state they are, a token says that changes with each
batch and stands in Spark's state store too: where the store has another one (Spark ran the batch before in another worker, or goes
back to an earlier one), they are made anew from the store.

In the store stand a head and a list of pieces. A batch appends the states of the keys it touched; once most of what stands there is of
keys that were written again, all is written anew. So the cost of a batch follows the keys it touches, not all there are.

It is one module of over 300 lines: what a frame changes of a task, and what of that is kept, are read together.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from typing import Any

from esault.errors import PayloadError, StateError
from esault.flow.operators.element_operator import ElementOperator
from esault.flow.operators.operator import Operator
from esault.flow.operators.pane_operator import PaneOperator
from esault.flow.operators.timer_service import TimerService
from esault.flow.operators.window_operator import WindowOperator
from esault.payload.codec import Codec
from esault.payload.column import plain
from esault.routing.many_keys import names_of
from esault.routing.ring import Name, encode, key_of
from esault.spark.engine.event_time import words_of
from esault.spark.engine.frames import (
    COUNTS,
    DATA,
    END,
    FRAME_ROWS,
    PULSE,
    WORD,
    Sealed,
    batches_of,
    in_order,
    is_between,
    time_of,
)
from esault.spark.engine.job import Job
from esault.spark.engine.pieces import Restored, pack_columns
from esault.spark.engine.runners import Runners
from esault.spark.engine.seeds import Seeds, seed_folder
from esault.spark.engine.store import Head, Store
from esault.spark.engine.timings import leave_times
from esault.spark.engine.worker_error import WorkerError

__all__ = ["Task", "run_task"]

#: bytes of a piece that are aimed at, and keys of the first one, which tells how large their states are
PIECE, FIRST_KEYS = 1 << 20, 256
#: bytes of later pieces that are never worth writing all anew
FEW = 1 << 18
#: later pieces, at most, unless all were more when they were written last
MOST_PIECES = 64

#: (run, unit, task) -> (token, task) of those whose last batch was in this worker
_HERE: dict[tuple[str, str, int], tuple[str, Task]] = {}


def run_task(
    job: Job, unit: str, number: int, partition: int, epoch: int, frames: list[bytes], store: Store
) -> Iterator[Sealed]:
    """Process a batch of a task; gives what it sends. Raises WorkerError."""
    place = (job.run, unit, number)
    head = store.head()
    token = head[0] if head is not None else ""
    known, task = _HERE.pop(place, ("", None))
    if task is None or known != token:
        if task is not None:
            task.runners.let_go()
        for other in [p for p in _HERE if p[0] != job.run]:
            _HERE.pop(other)[1].runners.let_go()
        task = Task(job, unit, number)
        if head is not None:
            task.restore(head, store.pieces())
        elif unit in job.seeds:
            task.begin_with(Seeds(seed_folder(job.seed_dir), task.unit, job.seeds[unit]))
    try:
        yield from _batch(task, place, partition, epoch, frames, store)
    except BaseException:
        task.runners.let_go()
        raise


def _batch(
    task: Task, place: tuple[str, str, int], partition: int, epoch: int, frames: list[bytes], store: Store
) -> Iterator[Sealed]:
    runners, (_, unit, number) = task.runners, place
    began = time.monotonic()
    codec, outbox = runners.codec, runners.outbox
    ordered = in_order([codec.unpack(frame) for frame in frames])
    runners.begin(partition, f"{unit}/{number}", 0, max(map(time_of, ordered)))
    task.finish_surplus()
    for at, frame in enumerate(ordered):
        task.process(frame)
        if frame[0] <= WORD and (at + 1 == len(ordered) or ordered[at + 1][0] > WORD):
            runners.settle()  # clocks on the ways from here go by what comes of it
            yield from task.advance()
        elif is_between(frame) and task.unit.concurrency is None:  # else calls of earlier rows may be open
            yield from task.advance(between=True)
        yield from outbox.pop_sealed()
    runners.land(epoch)
    head = task.keep(store)
    runners.send((COUNTS, runners.counts(), {}, False))
    yield from outbox.pop_sealed(flush=True)
    leave_times(runners.job.shared, runners.times(), unit, time.monotonic() - began)
    if not head[5]:
        _HERE[place] = (head[0], task)


class Task:
    """See the module."""

    def __init__(self, job: Job, unit: str, number: int) -> None:
        self.unit = job.plan().units[unit]
        #: seconds without a tuple after which a key is finished; we keep the times, which must outlive this process
        self._expire_after = self.unit.expire_after if self.unit.expire_by == "processing" else None
        self.runners = Runners(job, unit, number)
        self.runner = self.runners.root
        assert self.runner.operator is not None
        self.operator = self.runner.operator
        self.operator.order_by_key()
        if isinstance(self.operator, ElementOperator):
            self.operator.stop_sweeping()
        #: what a batch bolt or one object changes is not seen: all of it is written each time
        self._seen = self.unit.objects.endswith("key") and not self.unit.batch
        #: names that were touched, in this order, so that objects made of the store stand as they did; None: any may have been
        self._dirty: dict[Name, None] | None = {}
        #: how many objects had been made when all that there are were dirty; -1: not all are, as far as was looked
        self._covered = -1
        #: how many names were dirty when it was last looked
        self._looked_at = 0
        #: inputs that change what stands under no key
        self._to_all = self.unit.broadcast_inputs
        self._used: dict[Name, float] = {}
        self._base = self._later = self._pieces = 0
        #: states that stand in the store, of which some have been written again since
        self._written = 0
        self._ended = False
        #: a state is what the attributes of an object are
        self._plain = type(self.operator) is ElementOperator and not self.unit.timers and self.unit.tick_every is None
        #: objects of tasks that there are no more, until the first batch
        self._surplus: list[Operator] = []
        self._words = words_of(job.plan(), job.layout, self.unit)
        self._name = f"{unit}/{number}"

    def restore(self, head: Head, pieces: Iterator[bytes]) -> None:
        """As it was."""
        _, self._base, self._later, self._pieces, self.operator.ordinal, self._ended, words = head
        codec = Codec()
        if self._words is not None:
            self._words.restore(codec.unpack(words))
        restored, used = Restored(codec), self._used if self._expire_after is not None else None
        self._written = sum(restored.add(piece, used) for piece in pieces)
        if used is not None:
            for name in used.keys() - set(restored):
                del used[name]
        operator = self.operator
        if self._plain and isinstance(operator, ElementOperator):
            operator.elements.put_states_in(restored)
            return
        for name in list(restored):
            state = restored.pop(name, None)
            assert state is not None
            operator.state.install_state(key_of(name), state)

    def begin_with(self, seeds: Seeds) -> None:
        """Take over what is this task's of what others have left."""
        runner, tasks = self.runner, self.runners.job.layout.tasks[self.unit.name]
        number = runner.context.sub_unit
        self._surplus = runner.call(lambda: seeds.into(self.operator, runner.context, number, tasks, runner.another))
        if self._expire_after is not None:
            self._used = {name: seeds.used[name] for name in self.operator.state.names() if name in seeds.used}
        beside = seeds.beside()
        # rows of the one with this number, and of those before, have other names
        self.operator.ordinal = max((ordinal for ordinal, _ in beside), default=0)
        if self._words is not None:
            self._words.merge([words for _, words in beside if words is not None])
        self._dirty = None  # all of it goes into the store

    def finish_surplus(self) -> None:
        """Finish the objects for which there is no task any more: what they would have put out at their end goes out now."""
        surplus, self._surplus = self._surplus, []
        for operator in surplus:
            self.runner.finish(operator, self.runners.now)

    def process(self, frame: Any) -> None:
        """Process a frame."""
        kind = frame[0]
        if kind == DATA:
            sent, batches = frame[3], batches_of(self.runners.codec, frame[5])
            for input, due, keys, values, ids in batches:
                self.runner.run(input, due, sent, keys, values, ids)
                if input in self._to_all:
                    self._dirty_too(None)
                elif self._dirty is not None or self._expire_after is not None:
                    self._touch(keys)
        elif kind == WORD and self._words is not None:
            self._words.hear(frame[1], frame[2], frame[3])
        elif kind == PULSE:
            now = frame[1]
            if self.unit.tick_every is not None:
                self._dirty = None
                self.runner.each(lambda operator: operator.ticking(now), now)
            self._fire(now)
            self._expire(now)
        elif kind == END and not self._ended:
            self._ended = True
            self._dirty = None
            self._know_the_furthest()
            self.runner.each(lambda operator: operator.finishing(), self.runners.now)
            self.runners.settle()
            self.runners.close()

    def advance(self, between: bool = False) -> Iterator[Sealed]:
        """Windows close that are due by what was said. Unless more rows of the batch follow, tasks behind this one hear of it."""
        words, operator = self._words, self.operator
        if words is None or self._ended:
            return
        grown = words.settle(self.runners.now, between)
        closing = operator if isinstance(operator, WindowOperator) else operator.timer_service
        if closing is not None:
            self._know_the_furthest()  # time may be over by these words
            if grown:
                self._dirty_too(None)  # where the watermark stands
                self.runner.each(lambda _: closing.advance(words.current), words.current)
            while self._closed_some(closing):
                yield from self.runners.outbox.pop_sealed()
        if not between:
            self.runners.say(self._name, None if words.idle else words.current, furthest=words.furthest)

    def _know_the_furthest(self) -> None:
        if self.operator.timer_service is not None and self._words is not None:
            self.operator.timer_service.furthest = self._words.furthest

    def _closed_some(self, closing: WindowOperator | TimerService) -> bool:
        """Close some of what is due, and send what all of it comes to; whether there may be more."""
        more = False

        def close(_: Operator) -> None:
            nonlocal more
            more = closing.close_some(FRAME_ROWS, FRAME_ROWS, lambda names: self._dirty_too(*names))

        self.runner.each(close, self.runners.now)
        return more

    def _dirty_too(self, name: Name) -> None:
        if self._dirty is not None:
            self._dirty[name] = None

    def _touch(self, keys: Any) -> None:
        if not self._seen:
            self._dirty = None
            return
        made = self.operator.elements.made if type(self.operator) is ElementOperator else -1
        if made >= 0 and made == self._covered and self._expire_after is None:
            return  # none is new, and all others are known to be dirty
        names = names_of(plain(keys))
        if self._dirty is not None:
            before = len(self._dirty)
            self._dirty.update(dict.fromkeys(names))
            if made >= 0 and before == len(self._dirty):
                self._look(made)
        if self._expire_after is not None:
            self._used.update(dict.fromkeys(names, self.runners.now))

    def _look(self, made: int) -> None:
        """Look whether all objects are dirty, which a batch with many tuples of each key comes to: the rest of it need not be noted."""
        dirty, elements = self._dirty, self.operator.elements  # type: ignore[attr-defined]
        assert dirty is not None
        if len(dirty) != self._looked_at and len(dirty) >= elements.count:
            self._looked_at = len(dirty)
            if all(map(dirty.__contains__, elements.names())):
                self._covered = made

    def _fire(self, now: float) -> None:
        """Timers or windows are due by the clock."""
        operator = self.operator if isinstance(self.operator, PaneOperator) else self.operator.timer_service
        if operator is None or self._ended:
            return
        while (names := operator.due_now(now)) is not None:
            self._dirty_too(*names)
            if self.unit.window is not None:
                self._dirty_too(None)  # up to when the clock has closed windows
            self.runner.each(lambda _: operator.fire_now(), now)

    def _expire(self, now: float) -> None:
        if self._expire_after is None or not isinstance(self.operator, ElementOperator):
            return
        last = now - self._expire_after
        expiring = self.operator
        quiet = (name for name, used in self._used.items() if used <= last and not expiring.waits(name))
        idle = sorted(quiet, key=lambda name: encode(key_of(name)))
        if idle:
            self.runner.each(lambda _: iter([expiring.expire(idle)]), now)
            for name in idle:
                del self._used[name]
            self._dirty = None

    def keep(self, store: Store) -> Head:
        """Have Spark keep the state as it is now; the new head."""
        operator = self.operator
        if self._ended:
            store.put([])
            self._base = self._later = self._pieces = 0
        else:
            dirty = self._dirty
            if dirty is None or self._many():
                self._written = 0
                pieces = list(self._packed(operator.state.saved_names()))
                store.put(pieces)
                self._base, self._later, self._pieces = sum(map(len, pieces)), 0, 0
            elif dirty:
                pieces = list(self._packed(list(dirty)))
                store.append(pieces)
                self._later += sum(map(len, pieces))
                self._pieces += len(pieces)
        self._dirty, self._covered, self._looked_at = {}, -1, 0
        words = b"" if self._words is None else Codec().pack(self._words.state())
        head = (secrets.token_hex(8), self._base, self._later, self._pieces, operator.ordinal, self._ended, words)
        store.set_head(head)
        return head

    def _many(self) -> bool:
        """Return whether all is to be written anew: most of what stands in the store is of keys that were written again."""
        again = self._later > max(self._base, FEW) and self._written > 2 * self.operator.state.saved_count
        return again or self._pieces >= max(MOST_PIECES, self._base // PIECE)

    def _packed(self, names: list[Name]) -> Iterator[bytes]:
        """Pieces with the states of these names."""
        codec, first, most = Codec(), 0, FIRST_KEYS
        while first < len(names):
            some = names[first : first + most]
            piece = self._alike(codec, some)
            pieces = [piece] if piece is not None else list(self._one_by_one(codec, some))
            yield from pieces
            first += len(some)
            most = max(1, min(len(some) * PIECE // max(1, sum(map(len, pieces))), 4 * most))
        self._written += len(names)

    def _alike(self, codec: Codec, names: list[Name]) -> bytes | None:
        """One piece with the states of these, if all of them are of one kind."""
        operator = self.operator
        if not self._plain or not isinstance(operator, ElementOperator):
            return None
        found = operator.elements.columns_of(names)
        used = None if self._expire_after is None else [self._used.get(name, 0.0) for name in names]
        try:
            return None if found is None else pack_columns(codec, names, *found, used)
        except PayloadError:
            return None  # too large, which may be said of one of them

    def _one_by_one(self, codec: Codec, names: list[Name]) -> Iterator[bytes]:
        source = self.operator.state
        rows: list[Any] = []
        size = 0
        for name in names:
            try:
                state = source.peek(name)
            except (StateError, PayloadError) as error:
                raise WorkerError(f"unit {self.unit.name!r}: {error}") from None
            # one that is gone is so from here on
            rows.append((source.key_of(name), state, self._used.get(name, 0.0)))
            size += len(state or b"") + 32
            if size >= PIECE:
                yield codec.pack(rows)
                rows, size = [], 0
        if rows:
            yield codec.pack(rows)
