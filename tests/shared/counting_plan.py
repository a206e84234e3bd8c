"""The plan of a word count, of which nothing runs: lines -> split -> count."""

from __future__ import annotations

from esault import Bolt, Spout, Topology, by_key, shuffle


class Lines(Spout):
    def read(self, limit):
        return []


class Pass(Bolt):
    def process(self, key, value):
        self.emit(key, value)


def plan_of_words(counters=2, splitters=2):
    t = Topology("words")
    split = t.spout("lines", Lines()).bolt("split", Pass, grouping=shuffle(), parallelism=splitters)
    split.bolt("count", Pass, grouping=by_key(), parallelism=counters)
    return t.plan()
