"""Sources of splits, which Spark reads one split after the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from esault import Bolt, Columns, Context, EndOfStream, SourceError, Topology
from esault.payload.codec import Codec
from esault.payload.column import plain
from esault.sinks import Collect
from esault.sinks.collect import read_collected
from esault.sources import CsvFiles
from esault.spark.engine import reading
from esault.spark.engine.adapted import adapted
from esault.spark.engine.refusals import refusals
from esault.spark.engine.whole_splits import WholeSplits
from esault.testing import LocalRuntime
from esault.topology.locate import locate
from esault.windows import TumblingWindow

from .chain import Chain

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'esault[spark]'")

FLOWS = str(Path(__file__).with_name("flows.py"))
ROWS = 700


class Seen(Bolt):
    def process(self, key, value): ...


def written(folder: Path, kind: str) -> Path:
    """Five files, one of them without a row."""
    folder.mkdir()
    for number in range(5):
        n = 0 if number == 2 else ROWS
        table = pa.table({"k": [f"k{i % 7}" for i in range(n)], "n": pa.array(range(n), pa.int64())})
        if kind == "parquet":
            pa.parquet.write_table(table, folder / f"{number}.parquet", row_group_size=100)
        else:
            pa.csv.write_csv(table, folder / f"{number}.csv")
    return folder


@pytest.mark.parametrize("new_workers", [False, True])
@pytest.mark.parametrize("kind", ["csv", "parquet", "directory"])
def test_what_they_give_is_what_they_give_to_actors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, new_workers: bool
) -> None:
    monkeypatch.setattr(reading, "READ_ROWS", 64)
    params = {"kind": kind, "folder": str(written(tmp_path / "files", kind))}
    local = LocalRuntime(locate(f"{FLOWS}:files").build(params))
    local.run_until_drained()
    chain = Chain(f"{FLOWS}:files", tmp_path / "run", params)
    while not chain.epochs.ended.is_set():
        chain.batch(1)
        if new_workers:
            chain.forget_workers()
    chain.reading.stop()
    chain.forget_workers()
    got, wanted = read_collected(str(chain.folder), "seen"), local.landed("seen")

    def known(rows):
        return sorted((str(row[0]), row[1][0]) for row in rows), sorted(repr((row[0], row[1][1])) for row in rows)

    assert known(got) == known(wanted) and len(got) >= 4 * ROWS


def test_other_files_than_at_first_are_told(tmp_path: Path) -> None:
    folder = written(tmp_path / "files", "csv")

    def opened() -> WholeSplits:
        spout = WholeSplits(CsvFiles(folder))
        spout.open(Context("rows"))
        return spout

    def some(spout: WholeSplits, n: int) -> list[Any]:
        rows = spout.read(n)
        return list(zip(plain(rows.keys), plain(rows.values))) if isinstance(rows, Columns) else list(rows)

    first = opened()
    rows = some(first, 100) + some(first, 100)
    position = Codec().unpack(Codec().pack_value(first.position()))
    rest = []
    with pytest.raises(EndOfStream):
        while True:
            rest += some(first, 1000)
    first.close()
    again = opened()
    again.seek(position)
    assert len(rows) + len(rest) == 4 * ROWS and some(again, 10) == rest[:10]
    again.close()
    (folder / "00.csv").write_text("k,n\n")
    with pytest.raises(SourceError, match="CsvFiles finds other files"):
        opened().seek(position)


@pytest.mark.parametrize(
    ("timed", "every", "why"),
    [(False, None, None), (False, 1.0, "looks for new files"), (True, None, "rows of the others late")],
)
def test_what_spark_would_read_in_another_order_is_refused(
    tmp_path: Path, timed: bool, every: float | None, why: str | None
) -> None:
    t = Topology("rows")
    rows = t.spout("rows", CsvFiles(tmp_path, key="k", types={"n": float}, every=every))
    if timed:
        rows = rows.window("seen", Seen, TumblingWindow(10), time=lambda row: row["n"])
    rows.sink("out", Collect())
    found = refusals(adapted(t))
    assert [why in each for each in found] == [True] if why else found == []
