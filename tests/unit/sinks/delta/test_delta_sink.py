"""Delta tables: what stands in them, what is refused, and who may touch delta-rs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import date, datetime, timezone
from pathlib import Path
from uuid import uuid4

import delta_log
import pytest
from small_process import run_small

import esault
from esault.errors import SinkError
from esault.sinks import DeltaSink
from esault.testing.contract import check_sink
from esault.topology.context import Context
from esault.topology.sink import RunInfo

deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed: pip install 'esault[delta]'")

WORDS = {"word": str, "n": int}
NOON = datetime(2026, 1, 31, 12, 0, 0, 123457, tzinfo=timezone.utc)


class Run:
    """One run of one sink, in this process."""

    def __init__(self, make, resumed=False, lineage="lineage", kept=()):
        self.name = uuid4().hex
        self.driver, self.sub_unit, self.lineage, self.epoch = make(), make(), lineage, 0
        self.driver.check()
        self.driver.begin(RunInfo(self.name, "topology", "sink", resumed, lineage))
        for epoch, handle in kept:
            self.driver.commit_all(epoch, [handle])
        self.driver.forget_staged([handle for _, handle in kept])
        self.open(self.sub_unit)

    def open(self, sub_unit, number=0):
        sub_unit.context = Context("sink", sub_unit=number, run=self.name, lineage=self.lineage)
        sub_unit.open(sub_unit.context)

    def prepared(self, rows):
        self.epoch += 1
        self.sub_unit.write_columns([key for key, _ in rows], [value for _, value in rows], 1.0, None)
        return self.sub_unit.prepare(self.epoch)

    def commit(self, *rows):
        handle = self.prepared(rows)
        self.driver.commit_all(self.epoch, [handle])
        return handle

    def end(self):
        self.driver.end(True)


@pytest.fixture
def run():
    """Start runs, which are ended."""
    runs = []

    def start(make, **options):
        made = Run(make, **options)
        runs.append(made)
        return made

    yield start
    for each in runs:
        each.end()


def laws_of_a_sink():
    made = check_sink(
        lambda place: DeltaSink(place, WORDS, partition_by="word"), lambda place: delta_log.rows(place, "word", "n")
    )
    assert made == 11


@pytest.mark.slow
class TestTheContract:
    def test_a_sink_of_the_box_keeps_it(self):
        run_small(laws_of_a_sink)


class TestRowsOfATable:
    def test_all_types_partitions_and_nulls_are_read_as_they_were(self, tmp_path, run):
        columns = {"k": str, "n": int, "day": date, "f": float, "at": datetime | None, "b": bytes, "s": str | None}
        values = [
            (1, date(2026, 1, 31), 0.5, NOON, b"\x00", "x" * 40),
            (2, date(2026, 2, 1), -1.5, None, b"", None),
            (3, date(2026, 1, 31), float("nan"), NOON, b"b", "é"),
        ]
        keys = ["a b/c%=é", "..", "plain"]
        made = run(lambda: DeltaSink(tmp_path / "t", columns, partition_by=["k", "day"]))
        made.commit(*zip(keys, values))
        expected = sorted(map(repr, ((k, *v) for k, v in zip(keys, values))))
        table = esault.read(tmp_path / "t")
        found = [tuple(row[name] for name in columns) for row in table.to_pylist()]
        assert (
            sorted(repr((*row[:4], row[4] and row[4].astimezone(timezone.utc), *row[5:])) for row in found) == expected
        )
        at = deltalake.DeltaTable(str(tmp_path / "t")).to_pyarrow_dataset()
        import pyarrow.compute as pc

        assert at.to_table(filter=pc.field("at") == NOON).num_rows == 2, "statistics do not hide rows"
        assert at.to_table(filter=pc.field("n") == 3).num_rows == 1
        assert at.to_table(filter=pc.field("f") < 0).num_rows == 1

    def test_a_text_that_cannot_name_a_folder_is_refused_before_the_checkpoint(self, tmp_path, run):
        made = run(lambda: DeltaSink(tmp_path / "t", WORDS, partition_by="word"))
        made.commit(("ü" * 41, 1))  # each is six characters of a folder's name
        with pytest.raises(SinkError, match=r"column 'word' holds a text of 42 characters, .* too long for a folder"):
            made.prepared([("ü" * 42, 2)])
        assert esault.read(tmp_path / "t").num_rows == 1

    def test_one_version_for_each_checkpoint_with_what_all_sub_units_prepared(self, tmp_path, run):
        made = run(lambda: DeltaSink(tmp_path, WORDS))
        other = DeltaSink(tmp_path, WORDS)
        made.open(other, 1)
        other.write_columns(["b"], [2], 1.0, None)
        made.driver.commit_all(1, [made.prepared([("a", 1)]), other.prepare(1), None])
        assert sorted(delta_log.rows(tmp_path, "word", "n")) == [("a", 1), ("b", 2)]
        assert delta_log.versions(tmp_path) == [[(f"esault/lineage/sink/{made.name}", 1)]]
        assert not list((tmp_path / "_esault_staged").rglob("*.parquet"))

    def test_a_commit_that_comes_again_changes_nothing_also_after_restart_numbers_begin_anew(self, tmp_path, run):
        first = run(lambda: DeltaSink(tmp_path, WORDS))
        handle = first.commit(("a", 1))
        first.driver.commit_all(1, [handle])
        first.end()
        again = run(lambda: DeltaSink(tmp_path, WORDS), resumed=True, kept=[(1, handle)])
        again.end()
        anew = run(lambda: DeltaSink(tmp_path, WORDS, "append"))
        anew.commit(("b", 2))
        assert sorted(delta_log.rows(tmp_path, "word", "n")) == [("a", 1), ("b", 2)]

    def test_the_first_checkpoint_has_number_0_on_spark(self, tmp_path, run):
        made = run(lambda: DeltaSink(tmp_path, WORDS))
        made.epoch = -1
        made.driver.commit_all(0, [made.commit(("a", 1))])
        assert delta_log.rows(tmp_path, "n") == [(1,)]

    def test_what_a_run_has_left_is_forgotten_and_not_that_of_others(self, tmp_path, run):
        run(lambda: DeltaSink(tmp_path, WORDS)).prepared([("lost", 1)])
        run(lambda: DeltaSink(tmp_path, WORDS), lineage="other/one").prepared([("waits", 1)])
        assert len(list((tmp_path / "_esault_staged").rglob("*.parquet"))) == 2
        run(lambda: DeltaSink(tmp_path, WORDS))
        assert [file.parent.name for file in tmp_path.rglob("*.parquet")] == ["other%2Fone"]

    def test_a_part_that_is_gone_is_said(self, tmp_path, run):
        made = run(lambda: DeltaSink(tmp_path, WORDS))
        handle = made.prepared([("a", 1)])
        for file in tmp_path.rglob("*.parquet"):
            file.unlink()
        with pytest.raises(SinkError, match="1 rows that wait for their commit, is gone"):
            made.driver.commit_all(1, [handle])

    def test_upserts_keep_the_newest_row_of_each_key_and_delete(self, tmp_path, run):
        made = run(
            lambda: DeltaSink(tmp_path, {"word": str, "my `n`": int, "gone": bool}, primary_key="word", deleted="gone")
        )
        made.commit(("a", (1, False)), ("b", (1, False)), ("a", (2, False)), ("c", (1, False)))
        handle = made.commit(("b", (0, True)), ("c", (5, False)), ("d", None))
        made.driver.commit_all(2, [handle])
        assert sorted(delta_log.rows(tmp_path, "word", "my `n`")) == [("a", 2), ("c", 5)]
        assert not list((tmp_path / "_esault_staged").rglob("*.parquet"))


class TestWhatIsThere:
    def test_modes(self, tmp_path, run):
        run(lambda: DeltaSink(tmp_path, WORDS)).commit(("a", 1))
        with pytest.raises(SinkError, match='exists and has rows. .*mode="append" keeps them'):
            run(lambda: DeltaSink(tmp_path, WORDS))
        run(lambda: DeltaSink(tmp_path, WORDS, "append")).commit(("b", 2))
        assert esault.read(tmp_path).num_rows == 2
        run(lambda: DeltaSink(tmp_path, {"x": str, "y": float}, "replace", partition_by="x")).commit(("c", 0.5))
        assert esault.read(tmp_path).to_pylist() == [{"x": "c", "y": 0.5}]
        assert esault.read(tmp_path, version=2).num_rows == 2, "older versions stay readable"
        with pytest.raises(SinkError, match="cannot be read at version 77"):
            esault.read(tmp_path, version=77)

    def test_columns_that_change(self, tmp_path, run):
        run(lambda: DeltaSink(tmp_path, WORDS)).commit(("a", 1))
        more = {"word": str, "x": float}
        with pytest.raises(SinkError, match='new here: x; only there: n .schema_mode="merge"'):
            run(lambda: DeltaSink(tmp_path, more, "append"))
        run(lambda: DeltaSink(tmp_path, more, "append", schema_mode="merge")).commit(("b", 0.5))
        rows = sorted(esault.read(tmp_path).to_pylist(), key=lambda row: row["word"])
        assert rows == [{"word": "a", "n": 1, "x": None}, {"word": "b", "n": None, "x": 0.5}]
        with pytest.raises(SinkError, match=r"column 'n' is long there and string \(str\) here"):
            run(lambda: DeltaSink(tmp_path, {"word": str, "n": str, "x": float}, "append", schema_mode="merge"))
        with pytest.raises(SinkError, match="partitioned by .., and DeltaSink says .'word'."):
            run(lambda: DeltaSink(tmp_path, {"word": str, "n": int, "x": float}, "append", partition_by="word"))

    def test_a_table_that_asks_for_more_is_refused(self, tmp_path, run):
        there = deltalake.DeltaTable.create(
            str(tmp_path / "t"),
            deltalake.Schema.from_arrow(esault_schema()),
            configuration={"delta.appendOnly": "true"},
        )
        with pytest.raises(SinkError, match="takes no changes of rows"):
            run(lambda: DeltaSink(tmp_path / "t", WORDS, "append", primary_key="word"))
        there.alter.add_constraint({"few": "n < 9"})
        with pytest.raises(SinkError, match=r"it has a constraint \(few\)"):
            run(lambda: DeltaSink(tmp_path / "t", WORDS, "append"))

    def test_folders_that_are_something_else(self, tmp_path):
        (tmp_path / "file").write_text("x")
        with pytest.raises(SinkError, match="is a file, not a folder"):
            DeltaSink(tmp_path / "file" / "t", WORDS).check()
        with pytest.raises(SinkError, match="holds other files"):
            DeltaSink(tmp_path, WORDS).check()
        (tmp_path / "t" / "_esault_log").mkdir(parents=True)
        with pytest.raises(SinkError, match="a table of eSault"):
            DeltaSink(tmp_path / "t", WORDS).check()

    def test_an_entry_that_is_not_whole_is_said(self, tmp_path, run):
        run(lambda: DeltaSink(tmp_path, WORDS)).commit(("a", 1))
        (tmp_path / "_delta_log" / f"{2:020}.json").write_text('{"commitInfo":{"timest')
        with pytest.raises(SinkError, match="the last entry of its log is not whole"):
            run(lambda: DeltaSink(tmp_path, WORDS, "append"))

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            ({"path": ""}, "path must be the name of a folder"),
            ({"path": "s3://bucket/t"}, "no local folder"),
            ({"path": "a%20b"}, "takes a % in a path for an escape"),
            ({"mode": "overwrite"}, 'mode must be "error", "append" or "replace"'),
            ({"schema_mode": "overwrite"}, 'schema_mode must be "merge" or None'),
            ({"partition_by": "day"}, "names 'day', which is no column"),
            ({"partition_by": ["word", "n"]}, "must name some of the columns"),
            ({"columns": {"word": str, "x": float}, "partition_by": "x"}, "possible are str, int, bool and date"),
            ({"primary_key": "x"}, "primary_key names 'x', which is no column"),
        ],
    )
    def test_arguments(self, arguments, said):
        with pytest.raises(SinkError, match=said):
            DeltaSink(**{"path": "t", "columns": WORDS, **arguments})


class TestOtherReaders:
    """What other libraries read, each by its own code."""

    @pytest.fixture
    def table(self, tmp_path, run):
        made = run(lambda: DeltaSink(tmp_path / "t", {"word": str, "n": int, "day": date | None}, partition_by="day"))
        made.commit(("a", (1, date(2026, 1, 31))), ("b", (2, None)))
        made.commit(("ü", (3, date(2026, 2, 1))))
        return str(tmp_path / "t")

    rows = [("a", 1, date(2026, 1, 31)), ("b", 2, None), ("ü", 3, date(2026, 2, 1))]

    def test_polars(self, table):
        polars = pytest.importorskip("polars")
        found = polars.scan_delta(table).select("word", "n", "day").sort("n").collect()
        assert found.rows() == self.rows

    def test_duckdb_by_its_own_reader(self, table):
        duckdb = pytest.importorskip("duckdb")
        package = pytest.importorskip("duckdb_extension_delta", reason="it is made for one version of DuckDB each")
        found = list(Path(package.__file__).parent.glob(f"extensions/v{duckdb.__version__}/*.duckdb_extension"))
        if not found:
            pytest.skip(f"no duckdb-extension-delta is installed for DuckDB {duckdb.__version__}")
        with duckdb.connect() as database:
            database.execute(f"LOAD '{found[0]}'")
            found = database.execute(f"select word, n, day from delta_scan('{table}') order by n").fetchall()
        assert found == self.rows

    def test_pandas_and_arrow(self, table):
        pytest.importorskip("pandas")
        assert sorted(deltalake.DeltaTable(table).to_pandas()["n"]) == [1, 2, 3]
        assert sorted(row["n"] for row in esault.read(table, ["n"]).to_pylist()) == [1, 2, 3]

    def test_files_are_put_together_and_removed_while_a_run_goes_on(self, tmp_path, run):
        made = run(lambda: DeltaSink(tmp_path, WORDS))
        for number in range(4):
            made.commit(("a", number))
        waiting = made.prepared([("a", 4)])
        table = deltalake.DeltaTable(str(tmp_path))
        assert table.optimize.compact()["numFilesRemoved"] == 4
        table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False, full=True)
        assert len(list(tmp_path.glob("*.parquet"))) == 1
        made.driver.commit_all(5, [waiting])
        assert sorted(delta_log.rows(tmp_path, "n")) == [(0,), (1,), (2,), (3,), (4,)]


@pytest.mark.slow
class TestWhoCommits:
    def test_the_process_that_commits_may_die(self, tmp_path, run):
        made = run(lambda: DeltaSink(tmp_path, WORDS))
        for number in range(3):
            os.kill(made.driver._committer.pid, signal.SIGKILL)
            made.commit(("a", number))
        assert sorted(delta_log.rows(tmp_path, "n")) == [(0,), (1,), (2,)]

    def test_another_writer_may_be_faster(self, tmp_path, run):
        one = run(lambda: DeltaSink(tmp_path, WORDS, primary_key="word"))
        two = run(lambda: DeltaSink(tmp_path, WORDS, "append", primary_key="word"), lineage="two")
        for number in range(3):
            one.commit(("a", number), ("one", number))
            two.commit(("a", number + 10), ("two", number))
        assert sorted(delta_log.rows(tmp_path, "word", "n")) == [("a", 12), ("one", 2), ("two", 2)]

    def test_a_fork_of_a_process_that_has_used_delta_rs_writes_and_commits(self, tmp_path):
        """A notebook that has read a Delta table, and then runs a topology: its processes are forks. And none of
        them uses the library: in one that does, delta-rs panics."""
        script = tmp_path / "notebook.py"
        script.write_text(
            f"""
import os, sys
import deltalake, esault
from esault import Topology
from esault.sinks import DeltaSink
from esault.sources import Items

def topology():
    t = Topology("notebook")
    t.spout("n", Items([("a", 1), ("b", 2)])).sink("out", DeltaSink({str(tmp_path / "t")!r}, {{"word": str, "n": int}}, "append"))
    return t

if __name__ == "__main__":
    schema = deltalake.Schema([deltalake.Field("x", "long")])
    deltalake.DeltaTable.create({str(tmp_path / "other")!r}, schema)
    child = os.fork()
    if not child:
        try:
            deltalake.DeltaTable({str(tmp_path / "other")!r})
        except BaseException as error:
            os._exit(7 if "fork" in str(error).lower() else 8)
        os._exit(0)
    print("fork", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    for _ in range(2):
        esault.run(topology, checkpoint=0.2)
        print(sorted(row["n"] for row in esault.read({str(tmp_path / "t")!r}).to_pylist()))
"""
        )
        environment = {**os.environ, "PYTHONPATH": str(Path(esault.__file__).parents[1])}
        done = subprocess.run(
            [sys.executable, str(script)], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.stdout.splitlines() == ["fork 7", "[1, 2]", "[1, 1, 2, 2]"], done.stderr


def esault_schema():
    import pyarrow as pa

    return pa.schema([("word", pa.string()), ("n", pa.int64())])
