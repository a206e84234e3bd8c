"""JsonLines below a prefix of an object store: the laws of the contract, on a folder that fsspec takes for a store."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest

from esault.sinks import JsonLines, Parquet
from esault.sinks.landing import parts
from esault.testing.contract import check_sink

pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'esault[s3]'")


def there(path):
    """Pairs that a reader sees, who leaves out what begins with a dot."""
    files = sorted(file for file in path.glob("*.jsonl"))
    return [(row["key"], row["value"]) for file in files for row in map(json.loads, file.read_text().splitlines())]


def test_the_laws_of_a_sink_hold():
    assert check_sink(lambda path: JsonLines(f"local://{path}", storage_options={"auto_mkdir": True}), there) == 12


def test_the_laws_of_a_sink_hold_for_a_table():
    options = {"auto_mkdir": True}

    def seen(path):
        if not path.exists():
            return []
        tables = [
            pq.read_table(name.removeprefix("local://")) for name in parts(f"local://{path}", storage_options=options)
        ]
        return [(row["key"], row["n"]) for table in tables for row in table.to_pylist()]

    make = lambda path: Parquet(f"local://{path}", {"key": str, "n": int}, storage_options=options)
    assert check_sink(make, seen) == 12
