"""The size of a batch: it begins small, and grows by what batches were measured to take.

What a tuple takes is not known beforehand. Fifty thousand that are counted are over before Spark has planned the next batch, and as many
that ask a service show nothing for minutes. So the first batch has few, and the next one as many as would take `LONG_ENOUGH` by the time
that workers were at it, but no more than so many times as before. A batch costs something whatever is in it, such as a sink that is
opened: what the next tuple takes, batches of two sizes tell.
"""

from __future__ import annotations

__all__ = ["FIRST", "LONG_ENOUGH", "MOST", "BatchSize"]

#: tuples of a part in the first batch; from how many on Spark's own time counts, too; and at most
FIRST, MANY, MOST = 256, 100_000, 2_000_000
#: seconds that a batch should take, for the engine's own second to be worth it; one that takes a quarter of them grows at once
LONG_ENOUGH = 4.0
#: how many times as long one may take that is of many tuples, where more of them wait: Spark's own second is less of it then
BEHIND = 2.0
#: how many times more tuples the next batch has at most, and where nothing was measured in workers; how many times fewer at most
GROWS, GROWS_BLINDLY, SHRINKS = 128, 8, 8
#: of its time a batch may take for what it costs whatever is in it
FIXED_SHARE = 0.25
#: pieces of a batch that several workers may read, and tuples of one at most
PIECES, PIECE_ROWS = 8, 8192


class BatchSize:
    """See the module. `every`: seconds between two batches; they may be as long then."""

    def __init__(self, every: float = 0.0) -> None:
        #: tuples of a part at most
        self.rows = FIRST
        #: as many the one behind it may have: what was measured so far says no less
        self.next_rows = FIRST
        #: tuples behind which another worker may begin to read
        self.piece = PIECE_ROWS
        self._target = max(LONG_ENOUGH, every)
        #: seconds that all workers take for a batch whatever is in it
        self._fixed = 0.0
        self._compared = False
        #: the last batches of other sizes: (rows, seconds)
        self._before: list[tuple[int, float]] = []

    def took(self, rows: int, limited: bool, seconds: float, worked: tuple[float, float] | None) -> None:
        """A batch with so many tuples of a part took so many seconds. `worked`: the seconds of workers, of the longest of each stage and of
        all; None: they did not say. `limited`: it had as many as it may.
        """
        if not rows:
            return
        if worked is None:
            if limited:
                self._grow(self._times(rows, seconds, GROWS_BLINDLY if seconds < self._target else 2, self._target))
            self.next_rows = self.rows
            return
        longest, total = worked
        self._learn(rows, total)
        at_once = max(1.0, total / max(longest, 1e-9))  # workers; both may be 0 by the clock
        long_enough = self._target * (BEHIND if limited and rows >= MANY else 1.0)
        target = max(long_enough, self._fixed / FIXED_SHARE / at_once)
        each = max(total - self._fixed, 1e-9) / rows
        fits = max(1.0, (target * at_once - self._fixed) / each)
        self.piece = max(1, min(PIECE_ROWS, int(fits / PIECES)))
        if longest > 2 * target:
            self.rows = min(self.rows, max(1, int(fits), rows // SHRINKS))
        elif limited:
            # A second size must be seen, or what a batch costs whatever is in it would be taken for that of its tuples for ever.
            self._grow(
                max(0 if self._compared else 2, min(self._times(rows, seconds, GROWS, long_enough), fits / self.rows))
            )
        self.next_rows = max(self.rows, min(MOST, GROWS * self.rows, int(fits)))

    def _times(self, rows: int, seconds: float, while_small: int, target: float) -> float:
        """Return how many times as many tuples there may be, by what a batch of so many took in all."""
        if self.rows < MANY:
            return while_small
        # As many as would take as long as they may if nothing of it were for the batch alone. Twice as many where less is left: some of it is.
        some = 2 if seconds < target else 1
        return max(some, min(GROWS_BLINDLY, rows / self.rows * target / max(seconds, 1e-9)))

    def _grow(self, times: float) -> None:
        self.rows = min(MOST, max(self.rows, int(self.rows * times)))

    def _learn(self, rows: int, seconds: float) -> None:
        """By two batches of different sizes: what one costs whatever is in it."""
        other = next((b for b in reversed(self._before) if b[0] >= 2 * rows or rows >= 2 * b[0]), None)
        if other is not None:
            (few, less), (many, more) = sorted([other, (rows, seconds)])
            each = max(0.0, (more - less) / (many - few))
            self._compared = True
            self._fixed = max(0.0, min(less - each * few, more - each * many))
        self._before = [*self._before[-2:], (rows, seconds)]
