"""A table with a primary key, as the engine uses it: updates, deletions, keys that move, crashes, compaction."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import esault
from esault.errors import SinkError, UsageError
from esault.sinks import JsonLines, Parquet, SparkTable
from esault.sinks.landing import compaction, table_log
from esault.sinks.landing.changelog import Changelog
from esault.sinks.landing.compaction import Compactor, compact_all, compact_some
from esault.sinks.landing.disk import LocalDisk
from esault.sinks.landing.log import CommitLog
from esault.sinks.landing.schema import Column
from esault.topology.context import Context
from esault.topology.sink import Row, RunInfo

pa = pytest.importorskip("pyarrow")

COLUMNS = {"word": str, "total": int}
DAY = 86400.0


class Time:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def opened(path: Any, sub_unit: int = 0, time: Any = lambda: 1000.0, run: str = "r1", **options: Any) -> SparkTable:
    sink = SparkTable(path, **{"columns": COLUMNS, "mode": "append", "primary_key": "word", **options})
    sink.open(Context("table", sub_unit=sub_unit, run=run, now=time))
    return sink


def write(sink: SparkTable, *rows: tuple[Any, Any]) -> None:
    sink.write_columns([key for key, _ in rows], [value for _, value in rows], 1.0, None)


def land(sink: SparkTable, epoch: int, *rows: tuple[Any, Any]) -> None:
    write(sink, *rows)
    sink.commit(epoch, sink.prepare(epoch))


def current(path: Any) -> dict[str, int]:
    rows = esault.read(path).to_pylist()
    assert len({row["word"] for row in rows}) == len(rows)
    return {row["word"]: row["total"] for row in rows}


def kept(path: Any) -> int:
    return sum(part.rows for part in table_log(path).files())


def test_of_each_key_the_row_that_was_written_last_is_there(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    land(sink, 0, ("a", 1), ("b", 1), ("a", 2))
    land(sink, 1, ("b", 2))
    assert current(tmp_path) == {"a": 2, "b": 2}
    assert kept(tmp_path) == 3  # within a commit only the last one lands


def test_a_key_that_moved_is_newer_whichever_owner_commits_first(tmp_path: Path) -> None:
    old, new = opened(tmp_path, 0), opened(tmp_path, 1)
    write(old, ("a", 1))
    write(new, ("b", 1))
    time = Time()
    time.now = 1001.0
    moved = opened(tmp_path, 2, time)
    land(moved, 0, ("a", 2))
    old.commit(0, old.prepare(0))
    assert current(tmp_path) == {"a": 2}
    back = opened(tmp_path, 3, lambda: 5.0)  # a clock that was set back: the log says how new the rows are
    land(back, 0, ("a", 3))
    assert current(tmp_path)["a"] == 3
    new.commit(0, new.prepare(0))
    assert current(tmp_path) == {"a": 3, "b": 1}


def test_what_was_prepared_and_is_committed_by_the_next_life_is_older_than_what_that_writes(tmp_path: Path) -> None:
    before = opened(tmp_path)
    write(before, ("a", 1), ("b", 1))
    handle = before.prepare(0)
    time = Time()
    time.now = 1010.0
    after = opened(tmp_path, 1, time)
    land(after, 1, ("a", 2))
    after.commit(0, handle)
    after.commit(0, handle)
    assert current(tmp_path) == {"a": 2, "b": 1}


def test_none_deletes_and_a_later_row_brings_the_key_back(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    land(sink, 0, ("a", 1), ("b", 1), ("c", 1), ("c", None))
    land(sink, 1, ("a", None), ("b", None))
    land(sink, 2, ("b", 5))
    assert current(tmp_path) == {"b": 5}
    assert esault.read(tmp_path, version=2).num_rows == 0


def test_a_column_says_that_a_row_is_gone(tmp_path: Path) -> None:
    columns = {"word": str, "start": int, "n": int, "gone": bool}
    sink = opened(tmp_path, columns=columns, primary_key=("word", "start"), deleted="gone")
    land(sink, 0, ("a", (0, 1, False)), ("a", (60, 1, False)), ("a", (0, 2, False)))
    land(sink, 1, ("a", {"start": 60, "n": 1, "gone": True}), ("b", (0, 1, False)))
    rows = esault.read(tmp_path).sort_by([("word", "ascending"), ("start", "ascending")]).to_pylist()
    assert [(row["word"], row["start"], row["n"]) for row in rows] == [("a", 0, 2), ("b", 0, 1)]
    write(sink, ("a", None))
    with pytest.raises(SinkError, match="deletes the row of a key.*deleted="):
        sink.prepare(2)


def test_a_class_says_the_columns(tmp_path: Path) -> None:
    sink = opened(tmp_path, columns=Total, key="word")
    land(sink, 0, ("a", Total("a", 1, 0.5)), ("a", Total("a", 2, None)), ("b", None))
    assert esault.read(tmp_path).to_pylist() == [{"word": "a", "total": 2, "mean": None}]


@dataclass
class Total:
    word: str
    total: int
    mean: float | None


def test_arrays_keep_the_last_row_of_a_key(tmp_path: Path) -> None:
    np = pytest.importorskip("numpy")
    sink = opened(tmp_path, columns={"word": int, "total": int})
    keys = np.arange(1000) % 10
    sink.write_columns(keys, np.arange(1000), 1.0, None)
    sink.write_columns([3], [7], 1.0, None)
    sink.commit(0, sink.prepare(0))
    assert kept(tmp_path) == 10
    assert current(tmp_path) == {**{key: 990 + key for key in range(10)}, 3: 7}


def test_a_value_that_does_not_fit_is_said_with_column_and_key(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    write(sink, ("a", 1), ("b", "no number"))
    with pytest.raises(SinkError, match="column 'total' is int, but key 'b' has 'no number'"):
        sink.prepare(0)
    sink = opened(tmp_path, columns={"word": str, "x": int, "y": int})
    write(sink, ("a", (1, None)))
    with pytest.raises(SinkError, match="column 'y' is int, but key 'a' has None"):
        sink.prepare(0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"primary_key": "wort"}, "primary_key names 'wort', which is no column; the columns are word, total"),
        ({"primary_key": ()}, "must name a column"),
        ({"primary_key": ("word", "word")}, "several once each"),
        ({"columns": {"word": str, "n": int | None}, "primary_key": ("word", "n")}, "declare it as int"),
        ({"deleted": "total"}, "deleted must name a column of bool"),
        ({"primary_key": None, "deleted": "total"}, "goes with a primary key"),
        ({"columns": {"word": str, "_updated": int}}, "_updated, _deleted are added by eSault"),
    ],
)
def test_what_is_declared_wrongly_is_refused(tmp_path: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(SinkError, match=said.replace("(", r"\(")):
        SparkTable(tmp_path, **{"columns": COLUMNS, "primary_key": "word", **options})


def test_a_table_keeps_its_primary_key(tmp_path: Path) -> None:
    land(opened(tmp_path), 0, ("a", 1))
    other = SparkTable(tmp_path, COLUMNS, "append")
    with pytest.raises(SinkError, match=r"another primary key \(word\) than SparkTable declares \(none\)"):
        other.check()
    replaced = SparkTable(tmp_path, COLUMNS, "replace")
    replaced.check()
    replaced.begin(RunInfo("r2", "topology", "table"))
    replaced.end(True)
    assert table_log(tmp_path).state.primary_key == ()


def test_ids_are_not_asked_for(tmp_path: Path) -> None:
    assert not SparkTable(tmp_path, COLUMNS, primary_key="word").wants_id
    assert SparkTable(tmp_path, COLUMNS).wants_id


# compaction ---------------------------------------------------------------------------------------


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compaction after few rows and parts."""
    monkeypatch.setattr(compaction, "MOST", 16)
    monkeypatch.setattr(compaction, "FEW_ROWS", 10)


@pytest.mark.usefixtures("eager")
def test_a_table_that_is_written_for_days_keeps_few_rows_and_parts(tmp_path: Path) -> None:
    time = Time()
    sink = opened(tmp_path, time=time)
    compactor = Compactor(str(tmp_path), now=time)
    most = 0
    for epoch in range(130):
        time.now += 1.0
        land(sink, epoch, *((f"w{epoch * 7 % 40 + place}", epoch) for place in range(20)))
        if epoch % 16 == 0:
            compactor.once()
        most = max(most, len(table_log(tmp_path).files()))
    sink.close()
    compactor.once()
    assert most <= 3 * compaction.MOST
    assert kept(tmp_path) <= 60 * (1 + compaction.TIMES) + compaction.MOST * 20
    expected: dict[str, int] = {}
    for epoch in range(130):
        expected.update({f"w{epoch * 7 % 40 + place}": epoch for place in range(20)})
    assert current(tmp_path) == expected


@pytest.mark.usefixtures("eager")
def test_parts_that_were_merged_go_after_an_hour(tmp_path: Path) -> None:
    time = Time()
    sink = opened(tmp_path, time=time)
    sink._compactor = compactor = Compactor(str(tmp_path), now=time)
    for epoch in range(20):
        land(sink, epoch, ("a", epoch))
    compactor.stop()
    compactor.once()
    assert len(list(tmp_path.glob("*.parquet"))) > 16
    time.now += compaction.KEEP + 1
    compactor.once()
    assert len(list(tmp_path.glob("*.parquet"))) == len(table_log(tmp_path).files())
    assert current(tmp_path) == {"a": 19}


def test_a_commit_that_comes_after_a_compaction_may_be_older(tmp_path: Path) -> None:
    late = opened(tmp_path, 1)
    write(late, ("a", 1), ("z", 1))
    handle = late.prepare(0)
    sink = opened(tmp_path, 0, lambda: 1001.0)
    for epoch in range(3):
        land(sink, epoch, ("a", 10 + epoch), ("gone", epoch), ("gone", None))
    log = CommitLog(str(tmp_path))
    compact_all(log, LocalDisk(), 1002.0)
    assert kept(tmp_path) == 2  # the deletion stays for a week
    late.commit(0, handle)
    assert current(tmp_path) == {"a": 12, "z": 1}
    compact_all(log, LocalDisk(), 1002.0 + 8 * DAY)
    assert kept(tmp_path) == 2
    assert current(tmp_path) == {"a": 12, "z": 1}


def test_a_large_table_is_merged_by_ranges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "TARGET_ROWS", 500)
    sink = opened(tmp_path)
    for epoch in range(5):
        land(sink, epoch, *((f"w{place:04}", epoch) for place in range(epoch, 1000, 2)))
    before = current(tmp_path)
    compact_all(CommitLog(str(tmp_path)), LocalDisk(), 1000.0)
    files = table_log(tmp_path).files()
    assert len(files) > 2 and all(part.base for part in files)
    assert kept(tmp_path) == 1000 and current(tmp_path) == before
    log = CommitLog(str(tmp_path))
    assert compact_some(log, LocalDisk(), 1000.0) == []
    assert log.files() == files


@pytest.mark.parametrize("numbers", [range(400), []])
def test_a_key_that_is_no_number_stays_where_a_large_table_is_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, numbers: Any
) -> None:
    monkeypatch.setattr(compaction, "TARGET_ROWS", 100)
    sink = opened(tmp_path, columns={"word": float, "total": int})
    odd = [float("nan"), float("inf"), float("-inf")] if numbers else [float("nan")] * 2
    for epoch in range(101):
        land(
            sink,
            epoch,
            *((float(number), epoch) for number in numbers[epoch * 100 : epoch * 100 + 100]),
            *((key, epoch) for key in odd),
        )
    compact_all(CommitLog(str(tmp_path)), LocalDisk(), 1000.0)
    rows = esault.read(tmp_path).to_pylist()
    assert len(rows) == len(numbers) + len(set(map(str, odd)))
    assert [row["total"] for row in rows if row["word"] != row["word"]] == [100]


def test_two_that_compact_at_once_do_not_harm_each_other(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    for epoch in range(20):
        land(sink, epoch, ("a", epoch), (f"w{epoch}", 1))
    sink.close()
    before = current(tmp_path)

    class Racing(LocalDisk):
        raced = False

        def touch(self, path: str) -> None:
            if not self.raced:
                self.raced = True
                compact_all(CommitLog(str(tmp_path)), LocalDisk(), 1000.0)
            super().touch(path)

    with pytest.raises(SinkError, match="another writer replaced it"):
        compact_all(CommitLog(str(tmp_path)), Racing(), 1000.0)
    assert current(tmp_path) == before
    log = table_log(tmp_path)
    added = {part.path for _, entry in log.entries(-1, log.state.version) for part in entry.add}
    assert {path.name for path in tmp_path.glob("*.parquet")} <= added


def test_parts_that_an_entry_shows_stay_though_its_writer_was_told_that_the_disk_failed(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    for epoch in range(4):
        land(sink, epoch, (f"w{epoch}", 1))
    sink.close()
    before = current(tmp_path)

    class Unsynced(LocalDisk):
        def sync_folder(self, folder: str) -> None:
            if folder.endswith("_esault_log"):
                raise OSError(5, "Input/output error")
            super().sync_folder(folder)

    disk = Unsynced()
    with pytest.raises(SinkError, match="Input/output error"):
        compact_all(CommitLog(str(tmp_path), disk), disk, 1000.0)
    assert len(table_log(tmp_path).files()) == 1  # the entry is there
    assert current(tmp_path) == before


class Dies(LocalDisk):
    """A disk whose process is gone after so many operations."""

    def __init__(self, after: int) -> None:
        self.left = after

    def _operation(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt

    def write_new(self, path: str, data: bytes | memoryview) -> None:
        self._operation()
        super().write_new(path, data)

    def link(self, source: str, target: str) -> bool:
        self._operation()
        return super().link(source, target)

    def rename(self, source: str, target: str) -> None:
        self._operation()
        super().rename(source, target)

    def touch(self, path: str) -> None:
        self._operation()
        super().touch(path)

    def remove(self, path: str) -> None:
        self._operation()
        super().remove(path)

    def sync_folder(self, folder: str) -> None:
        self._operation()
        super().sync_folder(folder)


def test_a_compaction_may_die_at_any_operation(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    for epoch in range(4):
        land(sink, epoch, ("a", epoch), ("b", epoch), ("c", None))
    sink.close()
    for after in range(30):
        disk = Dies(after)
        try:
            compact_all(CommitLog(str(tmp_path), disk), disk, 1000.0)
        except KeyboardInterrupt:
            assert current(tmp_path) == {"a": 3, "b": 3}
        else:
            break
    assert 8 < after < 29
    assert current(tmp_path) == {"a": 3, "b": 3} and kept(tmp_path) == 3


def test_the_end_of_a_run_leaves_one_row_of_each_key_for_any_reader_of_parquet(tmp_path: Path) -> None:
    driver = SparkTable(tmp_path, COLUMNS, "replace", primary_key="word")
    driver.check()
    driver.begin(RunInfo("r1", "topology", "table"))
    sink = opened(tmp_path)
    for epoch in range(5):
        land(sink, epoch, ("a", epoch), ("b", epoch))
    sink.close()
    driver.end(True)
    assert kept(tmp_path) == 2
    assert current(tmp_path) == {"a": 4, "b": 4}


_ROWS = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from("abc"), st.one_of(st.none(), st.integers(0, 9)), st.integers(0, 5)),
    max_size=40,
)


@given(_ROWS)
def test_however_writers_commit_and_compact_the_newest_row_of_a_key_is_there(
    tmp_path_factory: pytest.TempPathFactory, rows: Any
) -> None:
    path = tmp_path_factory.mktemp("table")
    time = Time()
    sinks = [opened(path, number, time) for number in range(3)]
    epochs = [0, 0, 0]
    expected: dict[str, int | None] = {}
    for writer, key, value, what in rows:
        time.now += 0.001  # a key's owners write one after the other
        write(sinks[writer], (key, value))
        expected[key] = value
        if what == 0:
            sinks[writer].commit(epochs[writer], sinks[writer].prepare(epochs[writer]))
            epochs[writer] += 1
        elif what == 1:
            compact_all(CommitLog(str(path)), LocalDisk(), time.now)
    for writer in (2, 0, 1):
        sinks[writer].commit(epochs[writer], sinks[writer].prepare(epochs[writer]))
    assert current(path) == {key: value for key, value in expected.items() if value is not None}


# reading ------------------------------------------------------------------------------------------


def test_rows_that_a_replay_repeated_are_read_once(tmp_path: Path) -> None:
    sink = SparkTable(tmp_path, COLUMNS, "append")
    sink.open(Context("table", run="r1"))
    sink.write([Row("a", 1, 1.0, "x"), Row("a", 1, 1.0, "x"), Row("b", 2, 2.0, "y"), Row("c", 3, 3.0, None)])
    sink.commit(0, sink.prepare(0))
    assert esault.read(tmp_path).to_pydict() == {"word": ["a", "b", "c"], "total": [1, 2, 3]}
    assert esault.read(tmp_path, ["total", "_time"]).num_rows == 3
    assert esault.read(tmp_path, added=True).schema.names == ["word", "total", "_id", "_time", "_run"]
    with pytest.raises(UsageError, match="no column 'n'; its columns are word, total"):
        esault.read(tmp_path, ["n"])
    assert esault.read(tmp_path, version=0).num_rows == 0


def test_json_lines_are_read_up_to_the_last_commit(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    driver = JsonLines(path)
    driver.begin(RunInfo("r1", "topology", "rows"))
    sink = JsonLines(path)
    sink.open(Context("rows", run="r1"))
    sink.write([Row("a", {"n": 1}, 1.0), Row("b", {"n": 2}, 1.0)])
    sink.commit(0, sink.prepare(0))
    with open(path, "ab") as file:  # as a crash in the middle of a commit leaves it
        file.write(b'{"key": "c", "val')
    assert esault.read(path).to_pylist() == [{"key": "a", "value": {"n": 1}}, {"key": "b", "value": {"n": 2}}]
    mixed = tmp_path / "mixed.jsonl"
    mixed.write_text('{"key": 1}\n{"key": "a"}\n')
    with pytest.raises(SinkError, match="do not fit columns.*line by line"):
        esault.read(mixed)
    mixed.write_text("no json\n")
    with pytest.raises(SinkError, match="holds no JSON lines"):
        esault.read(mixed)


def test_parquet_is_read_from_files_folders_and_tables(tmp_path: Path) -> None:
    sink = Parquet(tmp_path / "table", COLUMNS)
    sink.open(Context("table", run="r1"))
    write(sink, ("a", 1))  # type: ignore[arg-type]
    sink.commit(0, sink.prepare(0))
    (part,) = (tmp_path / "table").glob("*.parquet")
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "x.parquet").write_bytes(part.read_bytes())
    for path in (tmp_path / "table", tmp_path / "plain", tmp_path / "plain/x.parquet", tmp_path / "plain/*.parquet"):
        assert esault.read(path).to_pydict() == {"word": ["a"], "total": [1]}
    for path in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(SinkError, match="Run the topology that writes it first"):
            esault.read(path)


COMPOSITE = {"columns": {"user": str, "day": int, "total": int, "note": str}, "primary_key": ("user", "day")}


def by_user_and_day(path: Any) -> dict[tuple[str, int], tuple[int, str]]:
    return {(row["user"], row["day"]): (row["total"], row["note"]) for row in esault.read(path).to_pylist()}


def test_a_key_that_is_a_tuple_is_the_primary_key_of_several_columns(tmp_path: Path) -> None:
    sink = opened(tmp_path, **COMPOSITE)
    land(sink, 0, (("a", 1), (1, "x")), (("a", 2), (2, "y")), (("a", 1), {"total": 3, "note": "z"}))
    assert by_user_and_day(tmp_path) == {("a", 1): (3, "z"), ("a", 2): (2, "y")}
    land(sink, 1, (("a", 2), None), (("b", 1), (4, "")))
    assert by_user_and_day(tmp_path) == {("a", 1): (3, "z"), ("b", 1): (4, "")}


def test_a_key_of_one_part_is_that_part(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    land(sink, 0, (("a",), 1), (("b",), 2), (("a",), None))
    assert current(tmp_path) == {"b": 2}


def test_none_deletes_where_the_tuple_is_the_whole_primary_key(tmp_path: Path) -> None:
    sink = opened(tmp_path, columns=COMPOSITE["columns"], primary_key=("user", "note"))
    write(sink, (("a", 1), None))
    with pytest.raises(SinkError, match=r"the primary key \(user, note\) is not the tuple's key alone"):
        sink.commit(0, sink.prepare(0))


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 3), st.one_of(st.none(), st.integers(0, 9))), max_size=30)
)
def test_composite_keys_are_as_a_dict_says(rows: list[tuple[str, int, int | None]]) -> None:
    made = Changelog(
        "T",
        (Column("user", "string"), Column("day", "long"), Column("total", "long")),
        ("user", "day"),
        None,
        lambda: 1.0,
    )
    wanted: dict[Any, Any] = {}
    for user, day, total in rows:
        wanted[user, day] = total
    if not rows:
        return
    keys, cells, _, gone = made.cells([row[:2] for row in rows], [row[2] for row in rows], array("q", range(len(rows))))
    days, totals = (column for column, _ in cells)
    assert dict(zip(zip(keys, days), zip(totals, gone))) == {
        key: (total, total is None) for key, total in wanted.items()
    }
