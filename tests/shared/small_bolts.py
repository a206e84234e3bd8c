"""Bolts and a sink that many tests have in their topologies."""

from __future__ import annotations

from esault import Bolt, Sink


class Total(Bolt):
    """Emits the sum of the values so far."""

    def __init__(self):
        self.total = 0

    def process(self, key, value):
        self.total += value
        self.emit(key, self.total)


class Tuples(Bolt):
    """Emits how many tuples have come so far."""

    def __init__(self):
        self.total = 0

    def process(self, key, value):
        self.total += 1
        self.emit(key, self.total)


class RunningSum(Bolt):
    """Per key; the last one put out is the sum of all."""

    def __init__(self):
        self.total = self.rows = 0

    def process(self, key, value):
        self.total += value
        self.rows += 1
        self.emit(key, (self.rows, self.total))


class CountAtTheEnd(Bolt):
    def __init__(self):
        self.n = 0

    def process(self, key, value):
        self.n += 1

    def finish(self):
        self.emit(self.key, self.n)


class Named(Sink):
    """Asks for a name of each row, and keeps none."""

    wants_id = True

    def write(self, rows):
        pass
