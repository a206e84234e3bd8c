"""A spout whose rows come bit by bit, so that watermarks go on and timers are due while it runs, and not at its end alone."""

from __future__ import annotations

from esault import EndOfStream, Spout


class Slowly(Spout):
    """So many rows in each hundredth of a second, from where it was told to go on."""

    def __init__(self, rows, each=10):
        self.rows, self.each = rows, each
        self.next, self.opens = 0, 0.0

    def read(self, limit):
        now = self.context.now()
        if self.next >= len(self.rows):
            if now < self.opens + 0.05:
                return []  # the last watermark has its time, too
            raise EndOfStream
        if now < self.opens:
            return []
        self.opens = now + 0.01
        rows = self.rows[self.next : self.next + min(limit, self.each)]
        self.next += len(rows)
        return rows

    def position(self):
        return self.next

    def seek(self, position):
        self.next = position
