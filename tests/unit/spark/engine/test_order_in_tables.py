"""Which row of a key is the newest in a table, where a reader's rows go there and several workers might read them."""

from __future__ import annotations

from pathlib import Path

import pytest

import esault
from esault.spark.engine.landing import undivided
from esault.spark.engine.layout import lay_out
from esault.spark.engine.source import ranges

from .chain import Chain
from .flows import latest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'esault[spark]'")

FLOWS = str(Path(__file__).with_name("flows.py"))


def test_the_last_row_of_a_reader_is_the_one_of_its_key(tmp_path: Path) -> None:
    it = Chain(f"{FLOWS}:latest", tmp_path / "run", {"out": str(tmp_path)}, cores=4)
    it.batch(40)  # all rows in one batch, or two
    it.drain()
    rows = esault.read(tmp_path / "table").to_pylist()
    assert {row["key"]: row["n"] for row in rows} == {f"k{i}": 29_960 + i for i in range(40)}


def test_one_worker_reads_what_goes_to_a_table_by_key_and_several_all_else() -> None:
    plan = latest().plan()
    whole = undivided(plan, lay_out(plan, {}, 4))
    assert whole == {"rows"}
    before = {"parts": {"rows": [[0, None, False, []]], "others": [[0, None, False, []]]}}
    marks = [[row, 0.0, f"{row:04}" if row else None] for row in range(0, 1000, 10)]
    after = {"parts": {name: [[1000, "ZW5k", False, marks]] for name in before["parts"]}, "now": 1.0}
    pieces = [frame[1] for frame in ranges(before, after, 4, whole)]
    assert pieces.count("rows") == 1 and pieces.count("others") == 4
