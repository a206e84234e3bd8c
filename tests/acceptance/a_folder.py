"""Lines of a folder that gets files, each of them a split, to JSON lines."""

from __future__ import annotations

from esault import Bolt, Topology, by_key
from esault.sinks import JsonLines
from esault.sources import Directory


class InOrder(Bolt):
    """Lets the lines of a file through, and says which of them comes behind a later one."""

    def __init__(self):
        self.last = -1

    def process(self, key, value):
        number = int(value.rpartition("-")[2])
        self.emit(key, value if number > self.last else f"{value} behind {self.last}")
        self.last = number


def topology(name: str = "folder") -> Topology:
    t = Topology(name)
    lines = t.spout("lines", Directory("in", every=0.1), max_parallelism=8)
    lines.bolt("ordered", InOrder, grouping=by_key()).sink("rows", JsonLines("out.jsonl"))
    return t
