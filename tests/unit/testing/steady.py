"""A load by the manual clock."""

from __future__ import annotations

from esault import EndOfStream, Spout


class Steady(Spout):
    """`rate` tuples a second for so many seconds, of `keys` keys in turn."""

    def __init__(self, seconds, rate, keys):
        self.seconds, self.rate, self.keys, self.start, self.count = seconds, rate, keys, None, 0

    def due_by(self, passed):
        """Tuples that are due so many seconds after the first read."""
        return int(self.rate * passed)

    def read(self, limit):
        now = self.context.now()
        if self.start is None:
            self.start = now
        if now - self.start > self.seconds:
            raise EndOfStream
        due = self.due_by(now - self.start) - self.count
        rows = [(f"k{(self.count + i) % self.keys}", 1) for i in range(min(due, limit))]
        self.count += len(rows)
        return rows
