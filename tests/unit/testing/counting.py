"""A word count that the tests of changes share: lines -> split -> count -> table."""

from __future__ import annotations

import random
from collections import Counter

from small_bolts import Named as Landed
from small_bolts import Total as Count

from esault import Bolt, Spout, Topology, by_key, shuffle


class Nothing(Spout):
    """Stands where a test gives the tuples."""

    def read(self, limit):
        return []


class Split(Bolt):
    def process(self, key, value):
        for word in value.split():
            self.emit(word, 1)


def words(counters=2, splitters=2, grouping=None, **options):
    t = Topology("words")
    lines = t.spout("lines", Nothing())
    split = lines.bolt("split", Split, grouping=shuffle(), parallelism=splitters)
    count = split.bolt("count", Count, grouping=grouping or by_key(), parallelism=counters, **options)
    count.sink("table", Landed())
    return t


def text(lines, seed=1, each=8):
    """So many lines of so many words, of sixteen that there are."""
    order = random.Random(seed)
    return [("f", " ".join(order.choice("abcdefghijklmnop") for _ in range(each))) for _ in range(lines)]


def totals(rows):
    return Counter(word for _, line in rows for word in line.split())


def missing(local, lines, each=8):
    """Words of the lines that did not land, by what their rows are named: line.word.0."""
    landed = {row.id.split(":")[1] for row in local.landed("table")}
    return {f"{i}.{j}.0" for i in range(lines) for j in range(each)} - landed
