"""Rows of CSV, Parquet and Arrow's files, marked where one of a file comes behind a later one, to JSON lines."""

from __future__ import annotations

from esault import Bolt, Topology, by_key
from esault.sinks import JsonLines
from esault.sources import ArrowFiles, CsvFiles, ParquetFiles


class InOrder(Bolt):
    """Lets the rows of a stretch of a file through in order."""

    def __init__(self):
        self.last = -1

    def process(self, key, value):
        number = value["n"]
        self.emit(key, [value["file"], number if number > self.last else -1])
        self.last = number


def topology(name: str = "from_files") -> Topology:
    """Return it; it has no end: files may come."""
    t = Topology(name)
    kinds = {
        "csv": CsvFiles("csv", key="file", types={"n": int}, every=0.2),
        "parquet": ParquetFiles("parquet", key="part", every=0.2, split_size=500),
        "arrow": ArrowFiles("arrow", key="file", every=0.2),
    }
    rows = [t.spout(kind, source, max_parallelism=4) for kind, source in kinds.items()]
    ordered = [each.bolt(f"{kind}_ordered", InOrder, grouping=by_key()) for each, kind in zip(rows, kinds)]
    ordered[0].union(*ordered[1:]).sink("rows", JsonLines("out.jsonl"))
    return t
