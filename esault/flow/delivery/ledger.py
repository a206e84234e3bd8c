"""The ledger: which roots are taken over and which are complete, from two XORs per root.

The idea is Storm's acker (its `Acker`, and Sault, section on at-least-once delivery): every batch that descends from a
root is named by a random 64-bit id; the sender of a batch XORs its id into the root's sum once, the one that has
processed it does so again; the sum is 0 when all that was sent was processed. Here one ack carries both
halves, `id ^ XOR(ids derived from it)`, so that nothing is ever acked before what it derived is in; and there are
two sums, p ("taken over": the spout may send more) and d ("complete, durable": the position may be committed).

A replay is a new attempt under a new root with new ids: an ack of an attempt that was given up can do no harm. By
symmetric difference of ids no loss, doubling or reordering of acks completes a root with anything unprocessed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["DONE", "PROCESSED", "Ledger", "Root"]

#: incarnation of its owner, number, attempt: unique in a run
Root = tuple[int, int, int]

#: flag: p reached 0; told once per root
PROCESSED = 1
#: flag: d reached 0; told once per root, which is then forgotten
DONE = 2


class _Entry:
    """A registered root."""

    __slots__ = ("d", "p", "seen", "taken")

    def __init__(self, p: int, d: int, seen: float) -> None:
        self.p = p
        self.d = d
        #: when it was registered or last acked, seconds
        self.seen = seen
        #: PROCESSED was told
        self.taken = False


class Ledger:
    """Open roots and their sums. A plain core: time and messages are passed in, what they bring about is returned."""

    __slots__ = ("_bucket_seconds", "_early", "_entries", "_older", "_turned_at")

    def __init__(self, bucket_seconds: float = 30.0) -> None:
        """Sums of roots that were never registered here are dropped after one to two times `bucket_seconds`."""
        if not bucket_seconds > 0:
            raise ValueError(f"bucket_seconds must be above 0, not {bucket_seconds}")
        self._bucket_seconds = bucket_seconds
        self._entries: dict[Root, _Entry] = {}
        # Sums of unregistered roots: in the bucket of now, and in the one before.
        self._early: dict[Root, tuple[int, int]] = {}
        self._older: dict[Root, tuple[int, int]] = {}
        self._turned_at: float | None = None

    def register(self, root: Root, p: int, d: int, now: float) -> int:
        """Open a root with the XOR of the ids its owner sent; returns flags, since all its acks may be here already.

        Raises ValueError when it is open: a replay must be a new attempt, or the sums would cancel out unprocessed.
        """
        if root in self._entries:
            raise ValueError(f"root {root} is open already; a replay is registered under a new attempt")
        if self._early or self._older:
            early_p, early_d = self._take_early(root)
            p ^= early_p
            d ^= early_d
        entry = self._entries[root] = _Entry(p, d, now)
        if p and d:
            return 0
        return self._settle(root, entry)

    def ack(self, root: Root, p: int, d: int, now: float) -> int:
        """XOR into the root's sums; returns what that brought about: 0, PROCESSED, DONE or both, each once per root.

        An ack before its root is kept until the root is registered; one after its end is dropped in the course of time.
        """
        entry = self._entries.get(root)
        if entry is None:
            early_p, early_d = self._take_early(root)
            self._early[root] = (early_p ^ p, early_d ^ d)
            return 0
        entry.p = p = entry.p ^ p
        entry.d = d = entry.d ^ d
        entry.seen = now
        if d and (p or entry.taken):
            return 0
        return self._settle(root, entry)

    def _settle(self, root: Root, entry: _Entry) -> int:
        """Flags of an entry of which a sum is 0."""
        if entry.d:
            entry.taken = True
            return PROCESSED
        # What is complete was taken over, even if the ack that says so is still on its way.
        del self._entries[root]
        return DONE if entry.taken else PROCESSED | DONE

    def _take_early(self, root: Root) -> tuple[int, int]:
        sums = self._early.pop(root, None)
        if sums is None:
            sums = self._older.pop(root, None)
        return sums or (0, 0)

    def forget(self, root: Root) -> bool:
        """Give this attempt up; what comes for it later means nothing. Whether it was open."""
        self._take_early(root)
        return self._entries.pop(root, None) is not None

    def forget_owner(self, incarnation: int) -> int:
        """Forget all roots of an owner that is no more, registered or not; how many."""
        count = 0
        tables: tuple[dict[Root, Any], ...] = (self._entries, self._early, self._older)
        for table in tables:
            for root in [root for root in table if root[0] == incarnation]:
                del table[root]
                count += 1
        return count

    def expire(self, now: float) -> int:
        """Drop sums of roots that were not registered in time; call it now and then. How many were dropped."""
        if self._turned_at is None:
            self._turned_at = now
        if now - self._turned_at < self._bucket_seconds:
            return 0
        dropped = len(self._older)
        self._older, self._early, self._turned_at = self._early, {}, now
        return dropped

    def stalled(self, now: float, after: float) -> list[Root]:
        """Open roots without any ack for `after` seconds, in the order in which they were registered."""
        since = now - after
        return [root for root, entry in self._entries.items() if entry.seen <= since]

    def open(self) -> Iterator[Root]:
        """Roots that are registered and not done, in the order of registration; do not change the ledger meanwhile."""
        return iter(self._entries)

    @property
    def unregistered(self) -> int:
        """Return the number of roots that have acks here but were not registered, or not any more."""
        return len(self._early) + len(self._older)

    def check(self) -> None:
        """Raise AssertionError unless the invariants hold."""
        for root, entry in self._entries.items():
            if not entry.d:
                raise AssertionError(f"root {root} is complete and still open")
            if not entry.p and not entry.taken:
                raise AssertionError(f"root {root} is taken over and its owner was not told")
        if len({*self._entries, *self._early, *self._older}) != len(self._entries) + self.unregistered:
            raise AssertionError("a root is in the ledger twice")

    def __len__(self) -> int:
        """Number of open roots."""
        return len(self._entries)

    def __contains__(self, root: Root) -> bool:
        return root in self._entries
