"""Lines of a folder that gets files, counted, to JSON lines: their counts are state, which goes where `--state` says."""

from __future__ import annotations

from a_folder import InOrder

from esault import Bolt, Topology, by_key
from esault.sinks import JsonLines
from esault.sources import Directory, TcpLines


class Numbered(Bolt):
    """Numbers the lines of a file: a line that came twice, or a number that was lost, would be seen."""

    def __init__(self):
        self.lines = 0

    def process(self, key, value):
        self.lines += 1
        self.emit(key, (self.lines, value))


def topology(folder: str, out: str, name: str = "in_a_store") -> Topology:
    """Return it; it has no end."""
    t = Topology(name)
    lines = t.spout("lines", Directory(folder, every=0.3), max_parallelism=4)
    ordered = lines.bolt("ordered", InOrder, grouping=by_key())
    numbered = ordered.bolt("numbered", Numbered, grouping=by_key(), parallelism=2)
    numbered.sink("rows", JsonLines(out))
    return t


def from_a_socket(name: str = "from_a_socket") -> Topology:
    """Return one whose source cannot seek."""
    t = Topology(name)
    t.spout("lines", TcpLines("127.0.0.1", 1)).bolt("numbered", Numbered, grouping=by_key()).sink(
        "rows", JsonLines("rows")
    )
    return t
