"""The roots that one sub-unit owns: its window, its unfinished tuples, and what must be replayed.

See docs/explanation/delivery.md. A root is done when its two XORs are zero. p = 0, processed, gives the window its credit
back; d = 0, durable, lets the position before it be committed. A replay is a new attempt with a name of its own
in the ledger and new batch ids: with the same names, x ^ x = 0 would read as done with nothing processed.

It is one module of over 300 lines: opening, marking and replaying share one account of what is open.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from esault.flow.channel.frame import REGISTER, Root
from esault.flow.channel.lineage import Lineage
from esault.flow.delivery.acks import Acks
from esault.flow.delivery.ledger import DONE, PROCESSED, Ledger
from esault.flow.delivery.root_size import RootSize
from esault.histogram import Histogram
from esault.messages.delivery import Delivery
from esault.messages.settings import Settings

__all__ = ["STALLED", "OpenRoot", "Roots"]

#: a mark from an ack server: no ack came for this root for `replay_after` seconds
STALLED = 4

#: (stream, keys, values, ids) of the tuples of a root, as they were emitted
Payload = list[tuple[str, Any, Any, Any]]


class OpenRoot:
    """A root that is not done, with all that a replay needs."""

    __slots__ = (
        "attempt",
        "deadline",
        "done",
        "due",
        "number",
        "opened",
        "payload",
        "position",
        "processed",
        "queued",
        "rows",
        "times",
    )

    def __init__(self, number: int, payload: Payload, due: float, position: Any, opened: float) -> None:
        self.number = number
        self.attempt = 0
        self.payload = payload
        self.rows = sum(len(keys) for _, keys, _, _ in payload)
        self.due = due
        #: where the source stands after this root
        self.position = position
        self.opened = opened
        #: when it is replayed if it is not done by then; None: never
        self.deadline: float | None = None
        self.processed = False
        self.done = False
        #: it waits for its replay already
        self.queued = False
        #: how far event time had come before it, by the receiving unit; see `Roots.held`
        self.times: Mapping[str, float] | None = None


class Roots:
    """Owner's side of the ledger; the ledger itself sits here or in ack servers."""

    def __init__(
        self,
        incarnation: int,
        settings: Settings,
        acks: Acks,
        emit: Callable[[Lineage, Payload], None],
        window: int | None = None,
    ) -> None:
        self._incarnation = incarnation
        self._settings = settings
        self._acks = acks
        self._emit = emit
        self._least_window = settings.max_pending if window is None else window
        self._window: float = self._least_window
        self._tracked = settings.delivery is not Delivery.NONE
        self._exactly = settings.delivery is Delivery.EXACTLY_ONCE
        self.ledger = Ledger()
        #: how large the next one should be
        self.size = RootSize(settings.root_rows, self._tracked)
        self._next = 0
        #: in the order they were opened; those done at the front leave it
        self._order: deque[OpenRoot] = deque()
        self._open: dict[int, OpenRoot] = {}
        self._pending = 0
        #: tuples of roots that are not processed, and up to how many the window is open although it is full of roots
        self._pending_rows = 0
        self._wanted_rows = 0.0
        self._replays: deque[OpenRoot] = deque()
        self._graced = False
        #: when the window was last found closed: several roots may be processed at that moment
        self._closed_at = -1.0
        #: position before which everything is durable
        self.committed: Any = None
        #: with checkpoints: no ack came for a root for `replay_after` seconds
        self.stalled = False
        #: says how far event time has come here; None: no receiver asks
        self.times: Callable[[], Mapping[str, float]] | None = None
        #: told of each root that the ledger says something of: its rows are processed
        self.on_processed: Callable[[int], None] | None = None
        self.emitted = 0
        self.acked = 0
        self.replayed = 0
        #: seconds from opening to processed, from which it follows how long a replay waits
        self.completion = Histogram()
        #: seconds from opening to done
        self.ack_latency = Histogram()

    # opening -----------------------------------------------------------------------------------

    @property
    def credit(self) -> bool:
        """Return whether another root may be opened."""
        room = self._pending < self._window or self._pending_rows < self._wanted_rows
        return room and len(self._open) < self._settings.max_undurable

    def widen(self, share: float, filling: float = 0.0) -> None:
        """So many sub-units are fed from here: the window lets each have something to do; and so many roots may be under way.

        For one alone `max_pending` is enough, and better: small roots that find the window full are read as a large one.
        """
        self._wanted_rows = share * self._settings.pending_rows if share > 1 else 0.0
        self._window = max(self._least_window, filling)

    def open(self, payload: Payload, due: float, position: Any, now: float) -> None:
        """Emit these tuples as a root of their own."""
        number = self._next
        self._next += 1
        self.emitted += 1
        if not self._tracked:
            self._emit(Lineage((self._incarnation, number, 0), due), payload)
            self.acked += 1
            self.committed = position
            return
        root = OpenRoot(number, payload, due, position, now)
        self._enter(root)
        self._send(root, now)

    def open_beside(self, payload: Payload, now: float) -> OpenRoot | None:
        """Emit tuples that did not come out of the source, as a root of their own; it stays where it is. None: it is done already."""
        self.open(payload, now, self._order[-1].position if self._order else self.committed, now)
        return self._open.get(self._next - 1)

    def oldest(self) -> tuple[int, float] | None:
        """Return number and opening of the oldest root that is not processed; None: there is none."""
        return next(((root.number, root.opened) for root in self._order if not root.processed), None)

    @property
    def next_number(self) -> int:
        """Return the number of the next root."""
        return self._next

    def done_before(self, number: int) -> bool:
        """Return whether all roots before this one are done."""
        return not self._order or self._order[0].number >= number

    @property
    def held(self) -> Mapping[str, float] | None:
        """Event time before the oldest root that is not done, by the receiving unit: its tuples may come again. None: there is none."""
        return self._order[0].times if self._order else None

    def reserve(self) -> Root:
        """Return the name of the next root, which is opened by `adopt`."""
        self._next += 1
        return (self._incarnation, self._next - 1, 0)

    def adopt(self, name: Root, ids: int, rows: int, now: float) -> None:
        """Open a reserved root whose batches have come from a checkpoint and wait here; `ids` are theirs, XORed together."""
        root = OpenRoot(name[1], [], now, None, now)
        root.rows = rows
        self.emitted += 1
        self._enter(root)
        self._register(root, name, ids, ids, now)

    def _enter(self, root: OpenRoot) -> None:
        self._open[root.number] = root
        self._order.append(root)
        if self.times is not None:
            root.times = self.times()
        self._pending += 1
        self._pending_rows += root.rows

    def _send(self, root: OpenRoot, now: float) -> None:
        name = (self._incarnation, root.number, root.attempt)
        lineage = Lineage(name, root.due)
        self._emit(lineage, root.payload)
        self._register(root, name, lineage.p, lineage.d, now)

    def _register(self, root: OpenRoot, name: Root, p: int, d: int, now: float) -> None:
        acker = self._acks.acker(name)
        if acker == self._incarnation:
            self._apply(root, self.ledger.register(name, p, d, now), now)
        else:
            post = self._acks.post(acker)
            if post is not None:
                post.put(REGISTER, ((name, p, d),))

    # marks -------------------------------------------------------------------------------------

    def ack(self, name: Root, p: int, d: int, now: float) -> None:
        """An ack for a root whose ledger sits here."""
        flags = self.ledger.ack(name, p, d, now)
        if flags:
            self.mark(name, flags, now)

    def mark(self, name: Root, flags: int, now: float) -> None:
        """The ledger says that a root is processed, done, or has stalled. Old attempts say nothing."""
        root = self._open.get(name[1])
        if root is None or name[0] != self._incarnation or name[2] != root.attempt:
            return
        if flags & STALLED:
            if self._exactly:
                self.stalled = True
            else:
                self._replay(root)
        else:
            self._apply(root, flags, now)

    def _apply(self, root: OpenRoot, flags: int, now: float) -> None:
        if flags and self.on_processed is not None:
            self.on_processed(root.number)
        if flags & PROCESSED and not root.processed:
            took = now - root.opened
            if not self.credit:
                self._closed_at = now
            self.size.processed(took, root.rows, self._closed_at == now)
            self._give_back(root)
            self.completion.record(took)
        # With checkpoints nothing is replayed in place: a root that was processed is done.
        if flags & (DONE | PROCESSED if self._exactly else DONE) and not root.done:
            root.done = True
            if not root.processed:
                self._give_back(root)
            self.acked += 1
            self.ack_latency.record(now - root.opened)
            del self._open[root.number]
            root.payload = []
            order = self._order
            while order and order[0].done:
                self.committed = order.popleft().position

    def _give_back(self, root: OpenRoot) -> None:
        root.processed = True
        self._pending -= 1
        self._pending_rows -= root.rows

    # replay ------------------------------------------------------------------------------------

    def grace(self, now: float) -> None:
        """A process died or a channel broke: what is open now has a while to end on its own."""
        if self._exactly:
            return  # all go back together instead
        wait = max(self._settings.min_grace, 2 * self.completion.quantile(0.99))
        for root in self._open.values():
            if root.deadline is None and not root.queued:
                root.deadline = now + wait
        self._graced = bool(self._open)

    def acker_lost(self, acker: int) -> None:
        """The ack server of this number died, and what it knew with it: new attempts of all that sat there.

        By now all sub-units send acks to its successor.
        """
        if self._exactly:
            return
        for root in list(self._open.values()):
            if self._acks.number(root.number) == acker:
                self._replay(root)

    def set_replicas(self, down: Collection[int], mergers: tuple[int, ...], now: float) -> None:
        """Set the replicas of units that are not whole; see `ReplicaRoots`."""

    def _replay(self, root: OpenRoot) -> None:
        if root.queued:
            return
        root.queued = True
        self.ledger.forget((self._incarnation, root.number, root.attempt))
        root.attempt += 1
        root.deadline = None
        self._replays.append(root)

    def watch(self, now: float) -> None:
        """Find what is overdue; called now and then."""
        if self._graced:
            self._graced = False
            for root in list(self._open.values()):
                if root.deadline is not None:
                    if now >= root.deadline:
                        self._replay(root)
                    else:
                        self._graced = True
        for name in self.ledger.stalled(now, self._settings.replay_after):
            self.mark(name, STALLED, now)
        self.ledger.expire(now)

    def replay_one(self, now: float) -> bool:
        """Emit one overdue root again; False when there is none."""
        while self._replays:
            root = self._replays.popleft()
            root.queued = False
            if not root.done:
                self.replayed += 1
                self._send(root, now)
                return True
        return False

    # reading -----------------------------------------------------------------------------------

    @property
    def overdue(self) -> bool:
        """Return whether roots wait for their replay."""
        return bool(self._replays)

    @property
    def pending(self) -> int:
        """Roots that are not processed."""
        return self._pending

    @property
    def open_count(self) -> int:
        """Roots that are not done."""
        return len(self._open)

    def __iter__(self) -> Iterator[OpenRoot]:
        return iter(self._open.values())

    def check(self) -> None:
        """Invariants, for tests: the window counts what is not processed, the order holds what is open."""
        assert self._pending == sum(not r.processed for r in self._open.values())
        assert self._pending_rows == sum(r.rows for r in self._open.values() if not r.processed)
        assert {r.number for r in self._order if not r.done} == set(self._open)
