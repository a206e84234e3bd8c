"""The landed table as the engine uses it: many objects, crashes at any operation, and every mistake of a user."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

import pytest

from esault.errors import SinkError
from esault.sinks.landing import parts, staging, table_log, vacuum
from esault.sinks.landing import state as state_module
from esault.sinks.landing import table as table_module
from esault.sinks.landing.disk import LocalDisk
from esault.sinks.parquet import Parquet
from esault.sinks.spark_table import SparkTable
from esault.topology.context import Context
from esault.topology.sink import Row, RunInfo

pq = pytest.importorskip("pyarrow.parquet")

COLUMNS = {"word": str, "total": int}


def run(name: str = "r1", resumed: bool = False) -> RunInfo:
    return RunInfo(name, "topology", "table", resumed)


def read(path: Any) -> list[dict[str, Any]]:
    return [row for part in parts(path) for row in pq.read_table(part).to_pylist()]


def totals(path: Any) -> list[int]:
    return [row["total"] for row in read(path)]


def begun(path: Any, mode: str = "error", name: str = "r1", columns: Any = None, resumed: bool = False) -> SparkTable:
    sink = SparkTable(path, columns or COLUMNS, mode)
    sink.check()
    sink.begin(run(name, resumed))
    return sink


def opened(path: Any, sub_unit: int = 0, name: str = "r1", disk: Any = None) -> SparkTable:
    sink = SparkTable(path, COLUMNS, "append")
    if disk is not None:
        sink._disk = disk
    sink.open(Context("table", sub_unit=sub_unit, run=name))
    return sink


def land(sink: SparkTable, epoch: int, totals: Sequence[int]) -> None:
    sink.write_columns(["w"] * len(totals), totals, 1.0, None)
    sink.commit(epoch, sink.prepare(epoch))


def test_rows_land_with_id_time_and_run(tmp_path: Any) -> None:
    path = tmp_path / "new" / "t"
    driver = begun(path)
    sink = opened(path)
    sink.write_columns(["a", "b"], [1, 2], 1_700_000_000.25, ["x:1", "x:2"])
    sink.write([Row("c", 3, 0.0), Row("d", (4,), 1.5, "y"), Row("e", {"total": 5}, 1.5, "z")])
    sink.commit(0, sink.prepare(0))
    sink.close()
    driver.end(True)
    rows = read(path)
    assert [list(row.values()) for row in rows] == [
        ["a", 1, "x:1", datetime.fromtimestamp(1_700_000_000.25, timezone.utc), "r1"],
        ["b", 2, "x:2", datetime.fromtimestamp(1_700_000_000.25, timezone.utc), "r1"],
        ["c", 3, None, datetime.fromtimestamp(0, timezone.utc), "r1"],
        ["d", 4, "y", datetime.fromtimestamp(1.5, timezone.utc), "r1"],
        ["e", 5, "z", datetime.fromtimestamp(1.5, timezone.utc), "r1"],
    ]
    assert list(rows[0]) == ["word", "total", "_id", "_time", "_run"]
    assert SparkTable.wants_id


def test_parquet_has_the_declared_columns_only(tmp_path: Any) -> None:
    sink = Parquet(tmp_path / "t", {"word": str, "total": int})
    sink.check()
    sink.begin(run())
    sink.open(Context("table", run="r1"))
    sink.write_columns(["a"], [1], 1.0, None)
    sink.commit(0, sink.prepare(0))
    sink.end(True)
    assert read(tmp_path / "t") == [{"word": "a", "total": 1}]
    assert not Parquet.wants_id
    with pytest.raises(SinkError, match=r"other columns than SparkTable declares: the table has no column '_id'"):
        begun(tmp_path / "t", "append", "r2")


class Crash(BaseException):
    """The process is gone."""


class Breaking:
    """The real disk until operation number `after`; then the process is dead, or that operation fails."""

    def __init__(self, after: int, error: OSError | None = None) -> None:
        self.left, self.error, self.disk, self.dead = after, error, LocalDisk(), False

    def __getattr__(self, name: str) -> Any:
        operation = getattr(self.disk, name)

        def counted(*arguments: Any) -> Any:
            if name in ("write_new", "link", "rename", "sync_folder", "remove"):
                self.left -= 1
                if self.left < 0 and self.error is None:
                    raise Crash
                if self.left == -1:
                    raise self.error
            return operation(*arguments)

        return counted


@pytest.mark.parametrize("after", range(24))
def test_a_process_that_dies_at_any_operation_loses_and_repeats_nothing(tmp_path: Any, after: int) -> None:
    path = tmp_path / "t"
    begun(path)
    first = opened(path, disk=Breaking(after))
    handles: dict[int, Any] = {}
    acknowledged: list[int] = []
    try:
        for epoch in range(3):
            first.write_columns(["w", "w"], [2 * epoch, 2 * epoch + 1], 1.0, None)
            handles[epoch] = first.prepare(epoch)
            first.commit(epoch, handles[epoch])
            acknowledged.append(epoch)
    except Crash:
        pass
    seen = totals(path)
    assert len(seen) == len(set(seen))
    assert {total // 2 for total in seen} >= set(acknowledged)
    second = opened(path, 1)
    for epoch, handle in handles.items():
        second.commit(epoch, handle)
    assert sorted(totals(path)) == list(range(2 * len(handles)))


@pytest.mark.parametrize("after", range(10))
def test_a_disk_that_is_full_at_any_operation_is_an_error_and_the_epoch_can_be_tried_again(
    tmp_path: Any, after: int
) -> None:
    path = tmp_path / "t"
    begun(path)
    sink = opened(path, disk=Breaking(after, OSError(errno.ENOSPC, "No space left on device")))
    errors: list[str] = []
    handle = None
    sink.write_columns(["w", "w"], [0, 1], 1.0, None)
    for _ in range(3):
        try:
            handle = handle or sink.prepare(0)
            sink.commit(0, handle)
            break
        except SinkError as error:
            errors.append(str(error))
            assert totals(path) in ([], [0, 1])
    assert totals(path) == [0, 1]
    assert all("the disk is full" in error and str(path) in error and "free space" in error for error in errors)


def test_a_real_write_that_fails_midway_leaves_nothing(tmp_path: Any) -> None:
    path = tmp_path / "t"
    program = f"""
import resource, signal, os
from esault.errors import SinkError
from esault.sinks.spark_table import SparkTable
from esault.topology.context import Context
sink = SparkTable({str(path)!r}, {{"word": str, "total": int}})
sink.open(Context("u", run="r1"))
sink.write_columns([os.urandom(8).hex() for _ in range(20_000)], list(range(20_000)), 1.0, None)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
try:
    sink.prepare(0)
except SinkError as error:
    print(error)
print(sorted(os.listdir({str(path)!r})))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
sink.commit(0, sink.prepare(0))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert str(path) in first and "the disk is full (File too large)" in first
    assert second == "['_esault_log']"
    assert sorted(totals(path)) == list(range(20_000))


def test_an_epoch_that_was_prepared_and_given_up_comes_with_the_next(tmp_path: Any) -> None:
    path = tmp_path / "t"
    begun(path)
    sink = opened(path)
    sink.write_columns(["w"], [1], 1.0, None)
    given_up = sink.prepare(1)
    sink.write_columns(["w"], [2], 1.0, None)
    second = sink.prepare(2)
    assert totals(path) == []
    sink.commit(2, second)
    sink.commit(1, given_up)
    land(sink, 3, [3])
    assert totals(path) == [1, 2, 3]


@pytest.mark.slow
def test_a_long_epoch_does_not_stay_in_memory(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "_SPILL", 1_000_000)
    path = tmp_path / "t"
    begun(path)
    sink = opened(path)
    for start in range(0, 200_000, 1000):
        sink.write_columns(["w"] * 1000, range(start, start + 1000), 1.0, None)
        assert sink._opened().buffer.bytes < 3_000_000
    handle = sink.prepare(0)
    assert len(handle["epochs"][0]["add"]) > 3
    assert totals(path) == []
    sink.commit(0, handle)
    assert sorted(totals(path)) == list(range(200_000))


def test_a_handle_whose_rows_were_compacted_meanwhile_is_done_and_one_whose_rows_are_gone_is_an_error(
    tmp_path: Any,
) -> None:
    path = tmp_path / "t"
    begun(path)
    sink = opened(path)
    sink.write_columns(["w"], [1], 1.0, None)
    handle = sink.prepare(0)
    sink.commit(0, handle)
    for part in parts(path):
        os.unlink(part)
    opened(path, 1).commit(0, handle)
    sink.write_columns(["w"], [1], 1.0, None)
    handle = sink.prepare(1)
    os.unlink(path / handle["epochs"][0]["add"][0][0])
    with pytest.raises(SinkError, match=r"part-.*parquet, 1 rows prepared in epoch 1 of r1/table/0, is gone; vacuum"):
        sink.commit(1, handle)


def test_the_log_of_a_run_that_never_ends_does_not_grow_for_ever(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_module, "SNAPSHOT_EVERY", 8)
    monkeypatch.setattr(table_module, "_PRUNE_EVERY", 0.0)
    path = tmp_path / "t"
    driver, sink = begun(path), opened(path)
    folder = path / "_esault_log"
    for number in range(60):
        land(sink, number, [number])
        for each in folder.iterdir():
            os.utime(each, (1, 1))  # written long ago
    kept = sorted(each.name for each in folder.glob("*.json"))
    assert len(kept) < 30
    assert totals(path) == list(range(60))
    monkeypatch.setattr(table_module, "_PRUNE_EVERY", 3600.0)
    for number in range(60, 90):
        land(sink, number, [number])  # an hour is not over, and they are young
    assert len(list(folder.glob("*.json"))) >= len(kept) + 30 - 8
    driver.end(True)
    assert totals(path) == list(range(90))


def test_modes(tmp_path: Any) -> None:
    path = tmp_path / "t"
    for number, (mode, expected) in enumerate([("error", [0]), ("append", [0, 1]), ("replace", [2])]):
        driver = begun(path, mode, f"r{number}")
        land(opened(path, 0, f"r{number}"), 0, [number])
        driver.end(True)
        assert totals(path) == expected
    with pytest.raises(SinkError, match=r'exists and has rows. .* mode="append" keeps them, mode="replace" removes'):
        SparkTable(path, COLUMNS).check()
    with pytest.raises(SinkError, match="exists and has rows"):
        SparkTable(path, COLUMNS).begin(run("r9"))
    begun(path, "append", "r10")  # the refused one let go of the lock


def test_replacing_lets_columns_change_and_removes_the_old_parts_at_the_end(tmp_path: Any) -> None:
    path = tmp_path / "t"
    driver = begun(path)
    land(opened(path), 0, [1])
    driver.end(True)
    old = parts(path)
    with pytest.raises(SinkError, match="column 'total' was int and is now str"):
        SparkTable(path, {"word": str, "total": str}, "append").check()
    driver = begun(path, "replace", "r2", {"word": str, "total": float})
    assert parts(path) == []
    assert os.path.exists(old[0])
    driver.end(True)
    assert not os.path.exists(old[0])


def test_a_table_without_rows_is_in_nobodys_way(tmp_path: Any) -> None:
    begun(tmp_path / "t").end(True)
    begun(tmp_path / "t", "error", "r2", {"other": int}).end(True)
    assert table_log(tmp_path / "t").state.schema[0].name == "other"


def test_a_run_that_goes_on_keeps_what_it_wrote_whatever_the_mode(tmp_path: Any) -> None:
    for mode in ("error", "replace"):
        path = tmp_path / mode
        driver = begun(path, mode)
        land(opened(path), 0, [0])
        driver._lock.release()  # it crashed
        driver = begun(path, mode, "r2", resumed=True)
        land(opened(path, 0, "r2"), 1, [1])
        driver.end(True)
        assert totals(path) == [0, 1]


def test_what_is_left_of_an_earlier_run_cannot_write_any_more(tmp_path: Any) -> None:
    path = tmp_path / "t"
    driver = begun(path)
    left = opened(path)
    land(left, 0, [0])
    driver._lock.release()  # the driver died, its sub-unit lives on for a while
    begun(path, "replace", "r2")
    left.write_columns(["w"], [1], 1.0, None)
    handle = left.prepare(1)
    with pytest.raises(SinkError, match="is now written by run r2; what is left of run r1 may not add to it"):
        left.commit(1, handle)
    assert totals(path) == []


def test_a_run_identity_that_comes_twice_is_refused_since_its_rows_would_be_dropped(tmp_path: Any) -> None:
    path = tmp_path / "t"
    driver = begun(path)
    land(opened(path), 0, [0])
    driver.end(True)
    with pytest.raises(SinkError, match="run r1 has written to it before, and is not resumed"):
        begun(path, "append")
    driver = begun(path, "replace")
    land(opened(path), 0, [1])
    assert totals(path) == [1]


def test_two_runs_at_once_are_refused_also_across_processes(tmp_path: Any) -> None:
    path = tmp_path / "t"
    driver = begun(path)
    with pytest.raises(SinkError, match=rf"is being written by run r1 \(process {os.getpid()} on "):
        SparkTable(path, COLUMNS, "append").check()
    child = os.fork()
    if child == 0:
        try:
            SparkTable(path, COLUMNS, "append").begin(run("r2"))
        except SinkError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    driver.end(True)
    SparkTable(path, COLUMNS, "append").check()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("", COLUMNS), "SparkTable: path must be the name of a folder, got ''"),
        ((7, COLUMNS), "SparkTable: path must be the name of a folder, got 7"),
        (("t", COLUMNS, "overwrite"), 'mode must be "error", "append" or "replace", got \'overwrite\''),
        (("t", {"_time": int}), "the column name '_time' is taken: _id, _time, _run are added by eSault"),
        (("t", {}), "SparkTable: columns is empty"),
    ],
)
def test_a_wrong_argument_is_named(arguments: Any, message: str) -> None:
    with pytest.raises(SinkError, match=message):
        SparkTable(*arguments)


def test_what_is_in_the_way_is_named(tmp_path: Any) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(SinkError, match="file is a file, not a folder. Choose another path"):
        SparkTable(tmp_path / "file", COLUMNS).check()
    with pytest.raises(SinkError, match="file is a file, not a folder"):
        SparkTable(tmp_path / "file" / "below", COLUMNS).check()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "data.csv").write_text("x")
    for mode in ("error", "replace"):
        with pytest.raises(SinkError, match=r"full holds other files \(data.csv, ...\), and no table of eSault"):
            SparkTable(tmp_path / "full", COLUMNS, mode).check()
    (tmp_path / "delta" / "_delta_log").mkdir(parents=True)
    with pytest.raises(SinkError, match="is a Delta Lake table"):
        SparkTable(tmp_path / "delta", COLUMNS).check()
    (tmp_path / "empty").mkdir()
    SparkTable(tmp_path / "empty", COLUMNS).check()


def test_a_folder_that_may_not_be_written_is_named(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # the superuser may write anywhere
    with pytest.raises(SinkError, match=rf"this user may not make folders in {tmp_path}"):
        SparkTable(tmp_path / "t", COLUMNS).check()


def test_missing_pyarrow_is_named_with_the_remedy(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SinkError, match=r"needs pyarrow: pip install 'esault\[parquet\]'"):
        SparkTable(tmp_path / "t", COLUMNS).check()


def test_a_value_that_does_not_fit_names_sink_column_types_and_key(tmp_path: Any) -> None:
    sink = opened(tmp_path / "t")
    sink.write_columns(["a", "b"], [1, "2"], 1.0, None)
    with pytest.raises(SinkError) as caught:
        sink.prepare(0)
    path = str(tmp_path / "t")
    assert str(caught.value) == (
        f"SparkTable({path!r}) of table: column 'total' is int, but key 'b' has '2', of type str; "
        "declare the column as str, or emit int"
    )
    with pytest.raises(SinkError, match="is not open"):
        SparkTable(path, COLUMNS).write([Row("a", 1, 1.0)])


def test_reading_what_is_no_table_is_an_error(tmp_path: Any) -> None:
    with pytest.raises(SinkError, match="no table at .*: there is no such folder. Run the topology that writes it"):
        parts(tmp_path / "none")
    with pytest.raises(SinkError, match="no table at .*: the folder has no log of eSault"):
        parts(tmp_path)
    with pytest.raises(SinkError, match="is no table of eSault: it has no log"):
        vacuum(str(tmp_path))


def test_the_driver_and_an_import_load_no_pyarrow_and_writing_loads_no_pandas(tmp_path: Any) -> None:
    program = f"""
import sys
from esault.sinks.spark_table import SparkTable
from esault.topology.context import Context
from esault.topology.sink import RunInfo
sink = SparkTable({str(tmp_path / "t")!r}, {{"word": str, "total": int}})
sink.check(); sink.begin(RunInfo("r", "t", "u"))
assert "pyarrow" not in sys.modules
sink.open(Context("u", run="r"))
sink.write_columns(["a"], [1], 1.0, ["i"])
sink.commit(0, sink.prepare(0)); sink.end(True)
assert "pyarrow" in sys.modules and "pandas" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=200)
