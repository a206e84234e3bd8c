"""A topology whose file prints when it is imported, and when it is made."""

from __future__ import annotations

from esault import Topology
from esault.sinks import JsonLines
from esault.sources import Items

print("port of call: none")


def topology(name: str, out: str) -> Topology:
    print("making", name)
    t = Topology(name)
    t.spout("numbers", Items([(i, i) for i in range(1000)])).sink("rows", JsonLines(out))
    return t
