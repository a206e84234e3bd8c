"""Sources of splits, which Spark reads one split after the other."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from esault import Bolt, Columns, Context, EndOfStream, SourceError, Topology, TopologyError, shuffle
from esault.errors import UsageError
from esault.messages.settings import Settings
from esault.payload.codec import Codec
from esault.payload.column import plain
from esault.sinks import Collect
from esault.sinks.collect import read_collected
from esault.sources import CsvFiles, DeadLetters, KafkaSource
from esault.spark.engine import reading, whole_splits
from esault.spark.engine.adapted import adapted
from esault.spark.engine.frames import READ
from esault.spark.engine.layout import lay_out
from esault.spark.engine.refusals import check_options, refusals
from esault.spark.engine.source import dealt
from esault.spark.engine.whole_splits import WholeSplits
from esault.testing import LocalRuntime
from esault.topology.locate import locate
from esault.topology.split_source import SplitSource
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


#: where rows of the first two files come that say their first times once more, and how many
STRAY, STRAYS = 500, 20


def times_of(number: int, kind: str) -> list[int]:
    """What the rows of a file say: a range of its own, and in splits of one's own, which are read little by little, some of its beginning again."""
    own = list(range(number * 1000, number * 1000 + ROWS))
    if number in (0, 1) and kind == "own":
        own[STRAY:STRAY] = own[:STRAYS]
    return [] if number == 2 else own


def written_with_times(folder: Path, kind: str) -> Path:
    folder.mkdir()
    for number in range(5):
        times = times_of(number, kind)
        table = pa.table({"k": [f"k{i % 7}" for i in range(len(times))], "n": pa.array(times, pa.int64())})
        if kind == "parquet":
            pa.parquet.write_table(table, folder / f"{number}.parquet", row_group_size=100)
        else:
            pa.csv.write_csv(table, folder / f"{number}.csv")
    return folder


@pytest.mark.parametrize(("reads", "new_workers"), [(1, True), (9, False)])
@pytest.mark.parametrize("kind", ["csv", "parquet", "own"])
def test_a_watermark_is_the_least_of_all_splits_as_on_actors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, reads: int, new_workers: bool
) -> None:
    monkeypatch.setattr(reading, "READ_ROWS", 16)
    folder = written_with_times(tmp_path / "files", kind)
    params: dict[str, Any] = {"kind": kind, "folder": str(folder)}
    if kind == "own":
        params["splits"] = {str(number): times_of(number, kind) for number in range(5)}
    local = LocalRuntime(locate(f"{FLOWS}:timed_files").build(params))
    local.run_until_drained()
    chain = Chain(f"{FLOWS}:timed_files", tmp_path / "run", params)
    assert chain.job.layout.parts["rows"] >= 5 and chain.job.layout.partitions == 2
    while not chain.epochs.ended.is_set():
        chain.batch(reads)
        if new_workers:
            chain.forget_workers()
            if chain.epoch == 20:
                chain.rescale(cores=3)
    chain.reading.stop()
    chain.forget_workers()
    for name in ("tens", "late"):
        got, wanted = read_collected(str(chain.folder), name), local.landed(name)
        assert Counter(repr(row[:2]) for row in got) == Counter(repr(row[:2]) for row in wanted), name
    # those of the first file; what the second one says once more is behind its own time, and not behind that of the first
    assert sorted(row[1]["n"] for row in wanted) == list(range(STRAYS if kind == "own" else 0))
    assert len(wanted) == chain.tally.units["tens"].late


def test_splits_that_are_too_many_to_be_open_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_splits, "MOST_ALONE", 4)
    folder = written_with_times(tmp_path / "files", "csv")
    plan = adapted(locate(f"{FLOWS}:timed_files").build({"kind": "csv", "folder": str(folder)}))
    with pytest.raises(TopologyError, match="CsvFiles has 5 splits; .* 4 at most: name fewer files"):
        lay_out(plan, {}, 2)
    with pytest.raises(UsageError, match="--parallelism rows=3: with event time each file"):
        check_options(plan, Settings(), {"rows": 3}, {}, 16)
    (folder / "4.csv").unlink()
    assert lay_out(plan, {}, 2).parts == {"rows": 4}


@pytest.mark.parametrize("timed", [True, False])
def test_a_split_that_comes_between_driver_and_workers_is_told(tmp_path: Path, timed: bool) -> None:
    folder = written_with_times(tmp_path / "files", "csv")
    flow = "timed_files" if timed else "files"
    chain = Chain(f"{FLOWS}:{flow}", tmp_path / "run", {"kind": "csv", "folder": str(folder)})
    (folder / "1a.csv").write_text("k,n\nk1,1\n")
    # which of the two is told depends on which part is computed first
    with pytest.raises(Exception, match="CsvFiles (has 6 splits by now, and had 5|finds other files)"):
        chain.batch(1)
    chain.reading.stop()


def test_a_split_that_comes_before_the_driver_has_opened_all_parts_is_told(tmp_path: Path) -> None:
    folder = written_with_times(tmp_path / "files", "csv")
    spout = WholeSplits(CsvFiles(folder), alone=True)
    parts = spout.count(Context("rows"))
    (folder / "9.csv").write_text("k,n\nk1,1\n")
    spout.open(Context("rows", part=0, parts=parts))
    with pytest.raises(SourceError, match="CsvFiles has 6 splits by now, and had 5 when the run began"):
        spout.read(10)
    spout.close()


@pytest.mark.parametrize("in_order", [True, False])
def test_of_more_splits_than_actors_read_at_once_no_row_is_late(tmp_path: Path, in_order: bool) -> None:
    order = range(20) if in_order else reversed(range(20))
    splits = {f"{number:02}": list(range(at * 200, at * 200 + 200)) for number, at in enumerate(order)}
    params = {"kind": "own", "folder": "", "splits": splits}
    local = LocalRuntime(locate(f"{FLOWS}:timed_files").build(params))
    local.run_until_drained()
    chain = Chain(f"{FLOWS}:timed_files", tmp_path / "run", params)
    chain.drain()
    got, wanted = read_collected(str(chain.folder), "tens"), local.landed("tens")
    assert not read_collected(str(chain.folder), "late")
    # on actors the 17th waits until one has ended, and then its rows are behind those of all that are open
    assert bool(local.landed("late")) is not in_order
    if in_order:
        assert Counter(repr(row[:2]) for row in got) == Counter(repr(row[:2]) for row in wanted)


def test_many_pieces_are_dealt_to_few_tasks() -> None:
    frames = [(READ, "rows", part, 0, None, rows, [], None, 0.0) for part, rows in enumerate([9, 8, 7, 3, 2, 1])]
    assert dealt(frames[:2], 3) == [[frames[0]], [frames[1]]]
    hands = dealt(frames, 3)
    assert sorted(sum(frame[5] for frame in hand) for hand in hands) == [10, 10, 10]
    assert all(hand == sorted(hand, key=lambda frame: frame[2]) for hand in hands)


@pytest.mark.parametrize(("every", "why"), [(None, None), (1.0, "looks for new files")])
@pytest.mark.parametrize("timed", [False, True])
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


class Shelf(SplitSource):
    """Splits of one's own, of which nothing says that they end."""

    def splits(self):
        return ["a"]

    def open_split(self, id, position): ...


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (Shelf(), "Shelf does not say that each of its splits has an end, .* write bounded = True in its class"),
        (DeadLetters("dead.jsonl"), "DeadLetters marks what was sent again"),
        (
            KafkaSource("topic", "localhost:9092", until="end"),
            'KafkaSource reads a server, .* where until="end" would lie .* run it on actors, or land its rows in a table',
        ),
    ],
)
def test_a_refusal_says_what_is_in_the_way(source: SplitSource[Any, Any], why: str) -> None:
    t = Topology("rows")
    t.spout("rows", source).bolt("seen", Seen, grouping=shuffle())
    (found,) = refusals(adapted(t))
    assert re.search(why, found)
