"""A Delta table read by the text of its log alone, so that what deltalake wrote is not read by deltalake."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import unquote

import pyarrow.parquet as pq

__all__ = ["entries", "rows", "versions"]


def entries(path):
    """The actions of each version, in order. A log that has been shortened is not read."""
    for entry in sorted((Path(path) / "_delta_log").glob("*.json")):
        yield [json.loads(line) for line in entry.read_text().splitlines()]


def versions(path):
    """The application transactions of each version that has any: (identity, number) pairs."""
    found = ([(a["txn"]["appId"], a["txn"]["version"]) for a in actions if "txn" in a] for actions in entries(path))
    return [each for each in found if each]


def rows(path, *columns):
    """The rows, as tuples of these columns; a partition's value is as its text."""
    files = {}
    for actions in entries(path):
        for action in actions:
            if "remove" in action:
                files.pop(unquote(action["remove"]["path"]), None)
        for action in actions:
            if "add" in action:
                files[unquote(action["add"]["path"])] = action["add"]
    found = []
    for file, add in files.items():
        with pq.ParquetFile(Path(path) / file) as part:
            table = part.read()
        assert json.loads(add["stats"])["numRecords"] == table.num_rows
        values = add["partitionValues"]
        found += zip(*([values[c]] * table.num_rows if c in values else table[c].to_pylist() for c in columns))
    return found
