"""The new owner's side of a change: rows of moved keys are held until what came before them is here."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from esault.flow.channel.frame import FETCH, GOT, Batch
from esault.flow.delivery.acks import Post
from esault.flow.handover.divide import Divider, Entry, MovedKeys, divide
from esault.flow.handover.state_sender import Store
from esault.payload.column import plain
from esault.routing.ring import Name, canonical, key_of

__all__ = ["StateReceiver"]

#: names that are forgotten between two looks at the clock
SLICE = 256
#: seconds between two questions for the state of keys: a question for each batch would cost more than the batch
ASK_EVERY = 0.001


class _Waiting:
    """Rows of one batch that wait, together, for the state of several keys."""

    __slots__ = ("entry", "missing", "names", "since")

    def __init__(self, since: float, entry: Entry, names: list[Name], missing: set[Name]) -> None:
        self.since = since
        self.entry = entry
        #: of all its rows
        self.names = names
        #: names of keys whose state is not in
        self.missing = missing


class _Receipt:
    """The state of what comes from one old owner.

    First its carried rows, which stand before all that is held here. Then a row is released when its key's state is in,
    or the old owner has none, or all its state is in. Rows of one batch that must wait do so together, and those that
    wait are released in the order in which they came: their keys are asked for in this order, so that it costs little
    time, while a batch for each key would cost fifty times the processing.
    """

    def __init__(self, old: int, post: Post, queued: Counter[Name]) -> None:
        self.old = old
        self.post = post
        self.has_rows = False
        self.ended = False
        #: the old owner is dead
        self.lost = False
        #: numbers of the portions that have come, and how many there are, once that was said
        self.portions: set[int] = set()
        self.expected: int | None = None
        #: in order of arrival, before the old owner's rows are here
        self.held: list[tuple[float, Entry]] = []
        #: what waits for state, in order
        self.waiting: deque[_Waiting] = deque()
        #: rows that wait, by the key's name, of all old owners: a later row of the key must not pass them
        self.queued = queued
        #: who misses the state of a key
        self.missed: dict[Name, list[_Waiting]] = {}
        #: keys to ask for
        self.wanted: list[Any] = []
        self.ready: set[Name] = set()

    @property
    def done(self) -> bool:
        return self.has_rows and self.ended


class StateReceiver:
    """One change in which this sub-unit gets keys. `released` collects what may be processed, in order."""

    def __init__(
        self, version: int, divider: Divider, posts: Mapping[int, Post], store: Store, clock: Callable[[], float]
    ) -> None:
        self.version = version
        self._clock = clock
        self._since = clock()
        self._divider = divider
        self._queued: Counter[Name] = Counter()
        self._receipts = {old: _Receipt(old, post, self._queued) for old, post in posts.items()}
        self._store = store
        #: entries that may be processed now
        self.released: list[Entry] = []
        #: the longest that a row was held, seconds
        self.longest_hold = 0.0
        self._asked_at = 0.0
        self.moved_keys = 0
        self.moved_bytes = 0

    def offer(self, entry: Entry) -> Entry | None:
        """Return the part of the entry that concerns no moved key; the rest is held, or released if its key is ready."""
        divider, moved = self._divider, self._divider.moved
        if isinstance(moved, MovedKeys) and moved.everything is None and self._all_in_order:
            # No row of a key is processed before its state is here: one that has an element has come, or was here.
            owners = moved.of_rows_but(self._store.here, self._queued, entry.batch.keys)
            parts = divide(entry, owners, divider.random64, divider.acks)
        else:
            parts = divider(entry)
        for old, part in parts.items():
            if old:
                self._hold(self._receipts[old], part)  # type: ignore[index]
        return parts.get(0)

    @property
    def _all_in_order(self) -> bool:
        """Return whether no row has come before another of its key, but those whose keys are queued."""
        return not self.released and all(receipt.has_rows for receipt in self._receipts.values())

    def _hold(self, receipt: _Receipt, entry: Entry) -> None:
        if receipt.done:
            self.released.append(entry)
        elif not receipt.has_rows:
            receipt.held.append((self._clock(), self._divider.take_over(entry)))
        else:
            self._sort(receipt, self._clock(), entry)

    def _release(self, entries: Iterable[tuple[float, Entry]]) -> None:
        now = self._clock()
        for since, entry in entries:
            self.longest_hold = max(self.longest_hold, now - since)
            self.released.append(entry)

    def _sort(self, receipt: _Receipt, since: float, entry: Entry) -> None:
        """Release the rows of ready keys, put the others to their key's own."""
        if receipt.ended:
            self._release([(since, entry)])
            return
        names = [key if type(key) is str else canonical(key) for key in plain(entry.batch.keys)]
        ready, queued, missed = receipt.ready, receipt.queued, receipt.missed
        must_wait = [name not in ready or name in queued for name in names]
        parts = divide(entry, must_wait, self._divider.random64, self._divider.acks)
        if False in parts:
            # Making objects of states takes this sub-unit's time, and the window would close for keys of others meanwhile.
            self._release([(since, self._divider.take_over(parts[False]))])
        if True not in parts:
            return
        late = [name for name, wait in zip(names, must_wait) if wait]
        part = _Waiting(since, self._divider.take_over(parts[True]), late, set(late) - ready)
        receipt.waiting.append(part)
        queued.update(late)
        for name in part.missing:
            if name in missed:
                missed[name].append(part)
            else:
                missed[name] = [part]
                receipt.wanted.append(key_of(name))

    @property
    def ask_at(self) -> float | None:
        """Return the time at which `ask` is due; None: never."""
        if any(receipt.wanted for receipt in self._receipts.values()):
            return self._asked_at + ASK_EVERY
        return None

    def ask(self, now: float) -> None:
        """Ask for the state of keys that rows wait for, if the last question was not a moment ago."""
        if now < self._asked_at + ASK_EVERY:
            return
        for receipt in self._receipts.values():
            if receipt.wanted:
                self._asked_at = now
                receipt.post.put(FETCH, (self.version, tuple(receipt.wanted)))
                receipt.wanted.clear()

    def _advance(self, receipt: _Receipt) -> None:
        """Release what waits for nothing any more, and stands behind nothing that waits."""
        waiting, queued = receipt.waiting, receipt.queued
        while waiting and not waiting[0].missing:
            part = waiting.popleft()
            for name in part.names:
                if queued[name] == 1:
                    del queued[name]
                else:
                    queued[name] -= 1
            self._release([(part.since, part.entry)])

    # what the old owner sends -------------------------------------------------------------------------

    def lacks_rows(self, old: int) -> bool:
        """Return whether this is an old owner whose carried rows have not come."""
        receipt = self._receipts.get(old)
        return receipt is not None and not receipt.has_rows

    def rows(self, old: int, entries: Sequence[tuple[float, Batch, bool]]) -> None:
        """Its carried rows: they go before what is held."""
        receipt = self._receipts.get(old)
        if receipt is None:
            return
        self._confirm(receipt, 0)
        if receipt.has_rows:
            return
        receipt.has_rows = True
        held, receipt.held = receipt.held, []
        if self._divider.dealt:
            self.released.extend([Entry(*e) for e in entries])
            return
        carried = [(max(self._since, e[0]), Entry(*e)) for e in entries]
        for since, entry in (*carried, *held):
            self._sort(receipt, since, entry)

    @property
    def posts(self) -> dict[int, Post]:
        """The ways to the old owners."""
        return {old: receipt.post for old, receipt in self._receipts.items()}

    def state(self, old: int, number: int, items: Sequence[tuple[Any, bytes]]) -> None:
        """A portion of its state; empty bytes say that it has none for this key."""
        receipt = self._receipts.get(old)
        if receipt is None or receipt.lost:
            return  # of one that is dead: its keys have begun anew here
        self._confirm(receipt, number)
        if number in receipt.portions:
            return
        receipt.portions.add(number)
        ready, missed, install = receipt.ready, receipt.missed, self._store.install_state
        for key, state in items:
            name = key if type(key) is str else canonical(key)
            if name in ready:
                continue
            if state:
                install(key, state)
                self.moved_keys += 1
                self.moved_bytes += len(state)
            ready.add(name)
            if name in missed:
                for part in missed.pop(name):
                    part.missing.discard(name)
        self._advance(receipt)
        self._look_for_end(receipt)

    def end_after(self, old: int, number: int, portions: int) -> None:
        """It has sent all its state, in so many portions; some may have to come again."""
        receipt = self._receipts.get(old)
        if receipt is not None and not receipt.lost:
            self._confirm(receipt, number)
            receipt.expected = portions
            self._look_for_end(receipt)

    def _confirm(self, receipt: _Receipt, number: int) -> None:
        """Tell an old owner that this has come, whenever it does: the word of it may have been lost."""
        if not receipt.lost:
            receipt.post.put(GOT, (self.version, number))

    def _look_for_end(self, receipt: _Receipt) -> None:
        if not receipt.ended and receipt.expected is not None and len(receipt.portions) >= receipt.expected:
            self.end(receipt.old)

    def end(self, old: int) -> None:
        """All its state is here: what is still held has none."""
        receipt = self._receipts.get(old)
        if receipt is None:
            return
        receipt.ended = True
        for part in receipt.waiting:
            part.missing.clear()
        self._advance(receipt)

    def lost(self, old: int) -> None:
        """The old owner is dead: what has not come will not; go on with fresh state."""
        if old in self._receipts:
            self._receipts[old].lost = True
        self.rows(old, ())
        self.end(old)

    def forget(self, until: float) -> bool:
        """Forget names of keys that need none any more, until then, and return whether there are more.

        There may be millions: freed at once they would take as long as everything else waits.
        """
        for receipt in self._receipts.values():
            ready = receipt.ready
            while receipt.done and ready:
                for _ in range(min(SLICE, len(ready))):
                    ready.pop()
                if ready and self._clock() >= until:
                    return True
        return False

    @property
    def holding(self) -> int:
        """Rows that are held now, or have been released and not been taken."""
        receipts = self._receipts.values()
        held = sum(len(entry.batch.keys) for r in receipts for _, entry in r.held)
        held += sum(len(entry.batch.keys) for entry in self.released)
        return held + sum(len(part.names) for r in receipts for part in r.waiting)

    @property
    def done(self) -> bool:
        """All that was to come is here."""
        return all(r.done and not r.ready for r in self._receipts.values()) and not self.released
