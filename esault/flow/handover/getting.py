"""The new owner's side of a change: rows of moved keys are held until what came before them is here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from esault.flow.delivery.acks import Post
from esault.flow.frame import FETCH, GOT, Batch
from esault.flow.handover.divide import Divider, Entry, divide
from esault.flow.handover.giving import Store
from esault.routing.ring import canonical

__all__ = ["Getting"]


class _Receipt:
    """What comes from one old owner.

    First its carried rows, which stand before all that is held here. Then a key is released when its state is in,
    when the old owner says that it has none, or when all its state is in.
    """

    def __init__(self, old: int, post: Post) -> None:
        self.old = old
        self.post = post
        self.has_rows = False
        self.ended = False
        #: in order of arrival, before the old owner's rows are here
        self.held: list[tuple[float, Entry]] = []
        #: one key's entries, in order, by the key's name
        self.stash: dict[Any, list[tuple[float, Entry]]] = {}
        self.ready: set[Any] = set()
        self.asked: set[Any] = set()

    @property
    def done(self) -> bool:
        return self.has_rows and self.ended


class Getting:
    """One change in which this sub-unit gets keys. `released` collects what may be processed, in order."""

    def __init__(
        self, version: int, divider: Divider, posts: Mapping[int, Post], store: Store, clock: Callable[[], float]
    ) -> None:
        self.version = version
        self._clock = clock
        self._since = clock()
        self._divider = divider
        self._receipts = {old: _Receipt(old, post) for old, post in posts.items()}
        self._store = store
        #: entries that may be processed now
        self.released: list[Entry] = []
        #: the longest that a row was held, seconds
        self.longest_hold = 0.0
        self.moved_keys = 0
        self.moved_bytes = 0

    def offer(self, entry: Entry) -> Entry | None:
        """What of the entry concerns no moved key; the rest is held, or released if its key is ready."""
        parts = self._divider(entry)
        for old, part in parts.items():
            if old:
                self._hold(self._receipts[old], part)  # type: ignore[index]
        return parts.get(0)

    def _hold(self, receipt: _Receipt, entry: Entry) -> None:
        if receipt.done:
            self.released.append(entry)
        elif not receipt.has_rows:
            receipt.held.append((self._clock(), self._divider.take(entry)))
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
        names = [canonical(key) for key in entry.batch.keys]
        parts = [None if name in receipt.ready else name for name in names]
        wanted: list[Any] = []
        for name, part in divide(entry, parts, self._divider.random64, self._divider.acks).items():
            if name is None:
                self._release([(since, part)])
                continue
            receipt.stash.setdefault(name, []).append((since, self._divider.take(part)))
            if name not in receipt.asked:
                receipt.asked.add(name)
                wanted.append(part.batch.keys[0])
        if wanted:
            receipt.post.put(FETCH, (self.version, tuple(wanted)))

    # what the old owner sends -------------------------------------------------------------------------

    def rows(self, old: int, entries: Sequence[tuple[float, Batch, bool]]) -> None:
        """Its carried rows: they go before what is held."""
        receipt = self._receipts.get(old)
        if receipt is None or receipt.has_rows:
            return
        receipt.has_rows = True
        held, receipt.held = receipt.held, []
        carried = [(max(self._since, e[0]), Entry(*e)) for e in entries]
        for since, entry in (*carried, *held):
            self._sort(receipt, since, entry)

    def state(self, old: int, number: int, items: Sequence[tuple[Any, bytes]]) -> None:
        """A portion of its state; empty bytes say that it has none for this key."""
        receipt = self._receipts.get(old)
        if receipt is None:
            return
        for key, state in items:
            name = canonical(key)
            if name in receipt.ready:
                continue
            if state:
                self._store.get(key, state)
                self.moved_keys += 1
                self.moved_bytes += len(state)
            receipt.ready.add(name)
            self._release(receipt.stash.pop(name, ()))
        receipt.post.put(GOT, (self.version, number))

    def end(self, old: int) -> None:
        """All its state is here: what is still held has none."""
        receipt = self._receipts.get(old)
        if receipt is None:
            return
        receipt.ended = True
        for entries in receipt.stash.values():
            self._release(entries)
        receipt.stash.clear()

    def lost(self, old: int) -> None:
        """The old owner is dead: what has not come will not; go on with fresh state."""
        self.rows(old, ())
        self.end(old)

    @property
    def holding(self) -> int:
        """Rows that are held now."""
        return sum(
            len(e.batch.keys)
            for r in self._receipts.values()
            for entries in (r.held, *r.stash.values())
            for _, e in entries
        )

    @property
    def done(self) -> bool:
        """All that was to come is here."""
        return all(r.done for r in self._receipts.values()) and not self.released
