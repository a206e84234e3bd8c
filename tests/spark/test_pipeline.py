"""The jobs from landed tables to reports: only what is new, each row once, what is wrong put aside, whatever is killed."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import depth
import pytest

from esault.errors import SinkError, UsageError
from esault.sinks.landing import parts, table_log
from esault.sinks.parquet import Parquet
from esault.sinks.spark_table import SparkTable
from esault.spark import read_table
from esault.spark.compact import compact
from esault.spark.jobs import Outcome, Rules
from esault.spark.pipeline import Pipeline
from esault.topology.context import Context
from esault.topology.sink import RunInfo

pq = pytest.importorskip("pyarrow.parquet")


def rows_of(path: Path | str) -> list[tuple[Any, ...]]:
    """All rows of a table, without Spark."""
    found: list[tuple[Any, ...]] = []
    for part in parts(path):
        table = pq.read_table(part, partitioning=None)
        found += zip(*(column.to_pylist() for column in table.columns))
    return sorted(found, key=str)


def report(tables: dict[str, Any]) -> dict[str, Any]:
    return {"rows": tables["table"].groupBy("word").count().orderBy("word")}


class Jobs:
    """A pipeline over one landed table."""

    def __init__(self, path: Path, into: Path, **rules: Any) -> None:
        self.into = into
        self.said: list[str] = []
        chosen = Rules(**{"reports": report, **rules})
        self.pipeline = Pipeline({"table": str(path)}, str(into), chosen, say=self.said.append)

    def run(self, **arguments: Any) -> Outcome:
        self.said.clear()
        return self.pipeline.run(**arguments)

    def totals(self) -> list[int]:
        return sorted(row[1] for row in rows_of(self.into / "clean" / "table"))


def test_each_run_reads_only_what_is_new_and_one_with_nothing_new_needs_no_spark(
    spark: Any, landed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = landed()
    table.land(range(10), [f"i{n}" for n in range(10)])
    jobs = Jobs(table.path, tmp_path / "into")
    first = jobs.run()
    assert first.cleaned["clean:table"].read == 10
    assert first.reports["rows"].rows == tuple((f"w{n}", 2) for n in range(5))
    before = {path: os.stat(path).st_mtime_ns for path in parts(tmp_path / "into/clean/table")}

    table.land(range(5, 15), [f"i{n}" for n in range(5, 15)], sub_unit=1)  # half of it is a replay
    second = jobs.run()
    assert (second.cleaned["clean:table"].read, second.cleaned["clean:table"].kept) == (10, 5)
    assert second.cleaned["clean:table"].repeats == 5
    assert jobs.totals() == list(range(15))
    assert {path: os.stat(path).st_mtime_ns for path in before} == before  # nothing was written again
    assert second.reports["rows"].rows == tuple((f"w{n}", 3) for n in range(5))

    versions = [table_log(tmp_path / "into" / kind / "table").state.version for kind in ("clean", "quarantine")]
    monkeypatch.setattr("esault.spark.pipeline.session", None)  # who calls it now fails
    third = jobs.run()
    assert third.cleaned == {"clean:table": None}
    assert not third.reported
    assert third.reports == second.reports
    assert [table_log(tmp_path / "into" / k / "table").state.version for k in ("clean", "quarantine")] == versions
    assert jobs.said == []
    table.end()  # an entry without rows is nothing new
    assert jobs.run().cleaned == {"clean:table": None}


def test_a_step_finds_repetitions_by_their_numbers_among_what_came_before_and_in_its_quarantine(
    spark: Any, landed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("esault.spark.repeats.FEW", 0)
    monkeypatch.setattr("esault.spark.clean._TOGETHER", 1)  # a group for each part
    table = landed()
    table.land(range(10), [f"i{n}" for n in range(10)])
    table.land(range(5), [f"i{n}" for n in range(5)], sub_unit=1)
    jobs = Jobs(table.path, tmp_path / "into", expectations={"table": {"small": "total <> 7 and total <> 12"}})
    first = jobs.run().cleaned["clean:table"]
    assert (first.read, first.kept, first.repeats, first.quarantined) == (15, 9, 5, 1)
    table.land(range(6, 16), [f"i{n}" for n in range(6, 16)], sub_unit=2)  # i7 is in the quarantine already
    table.land([12], ["i12"], sub_unit=3)
    second = jobs.run().cleaned["clean:table"]
    assert (second.read, second.kept, second.repeats, second.quarantined) == (11, 5, 5, 1)
    assert jobs.totals() == [n for n in range(16) if n not in (7, 12)]


def test_bad_rows_and_damaged_parts_are_put_aside_with_the_reason(spark: Any, landed: Any, tmp_path: Path) -> None:
    table = landed()
    for first in (0, 10, 20):
        table.land(range(first, first + 10), [f"i{n}" for n in range(first, first + 10)])
    footer, inside = (Path(part) for part in parts(table.path)[1:])
    footer.write_bytes(footer.read_bytes()[:-7])
    data = bytearray(inside.read_bytes())
    data[4:200] = os.urandom(196)
    inside.write_bytes(data)
    jobs = Jobs(table.path, tmp_path / "into", expectations={"table": {"a small total": "total < 8"}})
    spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")  # as a user may have it: rows must not go in silence
    try:
        outcome = jobs.run()
    finally:
        spark.conf.unset("spark.sql.files.ignoreCorruptFiles")
    assert jobs.totals() == list(range(8))
    assert outcome.cleaned["clean:table"].quarantined == 22
    reasons = outcome.quarantined["table"]
    assert reasons.pop("not as expected: a small total") == 2
    assert all(reason.startswith("the part cannot be read: ") for reason in reasons)
    assert sum(reasons.values()) == 20
    aside = rows_of(tmp_path / "into/quarantine/table")
    assert next(row[1] for row in aside if row[1]).startswith('{"word":"w3","total":8,"_id":"i8"')
    assert {row[2] for row in aside if not row[1]} == {footer.name, inside.name}

    table.land([3], ["i8"])  # an id that is in the quarantine
    assert jobs.run().cleaned["clean:table"].repeats == 1


def test_a_changed_schema_is_kept_and_old_rows_have_null(spark: Any, tmp_path: Path) -> None:
    def land(run: str, columns: dict[str, Any], *rows: tuple[Any, ...]) -> None:
        driver = SparkTable(tmp_path / "t", columns, "append")
        driver.check()
        driver.begin(RunInfo(run, "topology", "table"))
        sink = SparkTable(tmp_path / "t", columns, "append")
        sink.open(Context("u", run=run))
        sink.write_columns([r[0] for r in rows], [r[1:] for r in rows], 1.0, [f"{run}{i}" for i in range(len(rows))])
        sink.commit(0, sink.prepare(0))
        driver.end(True)

    land("r1", {"word": str, "total": int}, ("a", 1), ("b", 2**53 + 1))
    jobs = Jobs(tmp_path / "t", tmp_path / "into")
    jobs.run()
    land("r2", {"word": str, "total": float, "share": float}, ("c", 0.5, 0.25))
    with pytest.raises(Exception, match=r"column 'total' was widened from int to float, and 9007199254740993 would be"):
        read_table(spark, tmp_path / "t").collect()
    jobs.run()
    with pytest.raises(Exception, match=r"9007199254740993 would be another number"):
        read_table(spark, tmp_path / "into/clean/table").collect()  # the row was clean when it came
    outcome = jobs.run(full=True)
    assert outcome.quarantined == {"table": {"an int is none of the floats that its column holds by now": 1}}
    clean = read_table(spark, tmp_path / "into/clean/table").drop("_id", "_time", "_run")
    assert sorted(map(tuple, clean.collect())) == [("a", 1.0, None), ("c", 0.5, 0.25)]
    assert '"total":9007199254740993' in rows_of(tmp_path / "into/quarantine/table")[0][1]
    land("r3", {"word": str, "total": int}, ("d", 4))
    jobs.run()
    streamed = spark.read.format("esault").load(str(tmp_path / "into/clean/table")).select("word", "total", "share")
    assert sorted(map(tuple, streamed.collect())) == [("a", 1.0, None), ("c", 0.5, 0.25), ("d", 4.0, None)]


def test_tables_are_partitioned_by_day_and_by_columns(spark: Any, landed: Any, tmp_path: Path) -> None:
    table = landed()
    table.land(range(10), time=1_700_000_000)
    table.land(range(10, 20), time=1_700_100_000)
    jobs = Jobs(table.path, tmp_path / "into [2]", partition_by={"table": ("date", "word")})
    jobs.run()
    clean = tmp_path / "into [2]/clean/table"
    assert sorted(name for name in os.listdir(clean) if "=" in name) == ["date=2023-11-14", "date=2023-11-16"]
    assert sorted(os.listdir(clean / "date=2023-11-14")) == [f"word=w{n}" for n in range(5)]
    some = read_table(spark, clean, partitions={"date": ["2023-11-16"], "word": ["w1", "w2"]})
    assert sorted(row.total for row in some.collect()) == [11, 12, 16, 17]
    with pytest.raises(UsageError, match="is not partitioned by 'total'; it is by: date, word"):
        read_table(spark, clean, partitions={"total": [1]})
    again = Jobs(table.path, tmp_path / "into [2]", partition_by={"table": ()})
    assert again.run().cleaned["clean:table"].why == "what it is to do has changed"
    assert again.totals() == list(range(20))
    assert read_table(spark, clean).count() == 20


def test_many_small_steps_are_compacted_and_a_replaced_table_is_read_anew(
    spark: Any, landed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = 9 if depth.PROFILE == "deep" else 4
    monkeypatch.setattr("esault.spark.pipeline._SMALL", many - 1)  # each step is a job of Spark
    table = landed()
    jobs = Jobs(table.path, tmp_path / "into")
    for step in range(2):
        for n in range(40):
            table.land([40 * step + n], [f"i{40 * step + n}"])
        jobs.run()
        assert jobs.said[0].startswith("compacting 40 parts of ")
        assert jobs.totals() == list(range(40 * (step + 1)))
    for n in range(80, 80 + many):
        table.land([n], [f"i{n}"])
        jobs.run(job="clean:table")
    assert len(parts(tmp_path / "into/clean/table")) == 2 + many
    jobs.run()
    assert len(parts(tmp_path / "into/clean/table")) == 1
    assert jobs.totals() == list(range(80 + many))
    table.end()
    landed(run="r2", mode="replace").land([7], ["i1"])
    assert jobs.run().cleaned["clean:table"].why == "table was replaced"
    assert jobs.totals() == [7]


class Killed(BaseException):
    """The process is gone."""


def test_a_job_that_is_killed_at_any_write_does_the_same_when_it_runs_again(
    spark: Any, landed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = landed()
    expectations = {"table": {"no three": "total % 10 <> 3"}}
    rules: dict[str, Any] = {"expectations": expectations}
    table.land(range(20), [f"i{n}" for n in range(20)])
    reference = Jobs(table.path, tmp_path / "reference", **rules)
    reference.run()
    killed = Jobs(table.path, tmp_path / "killed", **rules)
    killed.run()
    table.land(range(15, 30), [f"i{n}" for n in range(15, 30)], sub_unit=1)

    from esault.sinks.landing.disk import LocalDisk

    def dying(after: int) -> Callable[..., Any]:
        left = [after]

        def counted(real: Callable[..., Any]) -> Callable[..., Any]:
            def operation(disk: Any, *arguments: Any) -> Any:
                left[0] -= 1
                if left[0] < 0:
                    raise Killed
                return real(disk, *arguments)

            return operation

        return counted

    deaths = 0
    for after in depth.chosen(range(0, 60, 5), (0, 10, 15)):
        with monkeypatch.context() as patch:
            made = dying(after)
            for name in ("write_new", "link", "rename", "sync_folder"):
                patch.setattr(LocalDisk, name, made(getattr(LocalDisk, name)))
            try:
                killed.run()
            except Killed:
                deaths += 1
            else:
                break
        if after == 10:  # more lands between a death and the next try
            table.land([33, 34], ["i33", "i34"])
    reference.run()
    killed.run()
    assert deaths > 2
    assert killed.totals() == reference.totals() == [n for n in [*range(30), 34] if n % 10 != 3]
    for kind in ("clean", "quarantine"):
        assert rows_of(tmp_path / "killed" / kind / "table") == rows_of(tmp_path / "reference" / kind / "table")
    assert not [name for name in os.listdir(tmp_path / "killed/clean/table") if name.startswith(".staging")]
    assert killed.run().cleaned == {"clean:table": None}


def test_a_table_that_is_being_written_does_not_keep_the_job_busy(
    spark: Any, landed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = landed()
    table.land([0], ["i0"])
    jobs = Jobs(table.path, tmp_path / "into")
    clean = jobs.pipeline.clean["table"].clean
    commit = clean.commit

    def while_more_lands(*arguments: Any, **named: Any) -> None:
        commit(*arguments, **named)
        table.land([len(jobs.totals())], [f"i{len(jobs.totals())}"])

    monkeypatch.setattr(clean, "commit", while_more_lands)
    jobs.run(job="clean:table")
    assert jobs.totals() == [0]
    jobs.run(job="clean:table")
    assert jobs.totals() == [0, 1]


def test_a_step_that_ended_half_way_is_ended_before_what_has_landed_since(
    spark: Any, landed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = landed()
    jobs = Jobs(table.path, tmp_path / "into", expectations={"table": {"no three": "total % 10 <> 3"}})
    table.land(range(10), [f"i{n}" for n in range(10)])
    jobs.run()
    table.land(range(5, 20), [f"i{n}" for n in range(5, 20)], sub_unit=1)
    clean = jobs.pipeline.clean["table"].clean

    def killed(*arguments: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(clean, "commit", killed)
        with pytest.raises(Killed):
            jobs.run()
    aside = rows_of(tmp_path / "into/quarantine/table")
    assert [row[3] for row in aside] == [1, 1]
    assert jobs.totals() == [n for n in range(10) if n != 3]
    table.land([20, 23], ["i20", "i23"])
    outcome = jobs.run()
    assert [line for line in jobs.said if line.endswith(" that are new")] == [
        "clean table: 15 rows in 1 part that are new",
        "clean table: 2 rows in 1 part that are new",
    ]
    assert outcome.cleaned["clean:table"].read == 17
    assert jobs.totals() == [n for n in range(21) if n % 10 != 3]
    assert sum(outcome.quarantined["table"].values()) == 3


def test_parts_that_vacuum_has_removed_are_read_in_their_new_form(spark: Any, landed: Any, tmp_path: Path) -> None:
    table = landed()
    jobs = Jobs(table.path, tmp_path / "into")
    table.land(range(10), [f"i{n}" for n in range(10)])
    jobs.run()
    table.land(range(10, 20), [f"i{n}" for n in range(10, 20)])
    new = parts(table.path)[1]
    compact(table.path)  # joins what was read with what was not
    os.remove(new)
    assert jobs.run().cleaned["clean:table"].why == "parts are gone"
    assert any("is gone, and the table's log names it; all of table is read again" in line for line in jobs.said)
    assert jobs.totals() == list(range(20))


def test_a_table_without_ids_and_times_is_cleaned_too(spark: Any, tmp_path: Path) -> None:
    sink = Parquet(tmp_path / "t", {"word": str, "total": int | None})
    sink.open(Context("u", run="r"))
    sink.write_columns(["a", "a"], [1, None], 1.0, None)
    sink.commit(0, sink.prepare(0))
    pipeline = Pipeline(
        {"t": str(tmp_path / "t")}, str(tmp_path / "into"), Rules(expectations={"t": {"n": "total > 0"}})
    )
    outcome = pipeline.run()
    assert outcome.reports["t"].rows == ((1, 1),)
    assert outcome.quarantined == {"t": {"not as expected: n": 1}}


def test_two_analyses_of_one_folder_do_not_meet(spark: Any, landed: Any, tmp_path: Path) -> None:
    table = landed()
    table.land([1])
    jobs = Jobs(table.path, tmp_path / "into")
    jobs.into.mkdir()
    with (
        jobs.pipeline._locked(),
        pytest.raises(SinkError, match=r"another analysis writes into .*: esault analyze \(pro"),
    ):
        jobs.run()


def test_rules_that_cannot_be_are_named(spark: Any, landed: Any, tmp_path: Path) -> None:
    table = landed()
    table.land(range(5))
    for rules, message in [
        ({"expectations": {"tabel": {}}}, "expectations: there is no table 'tabel'; there are: table"),
        ({"expectations": {"table": {"a": "totl > 1"}}}, r"expectations of table: 'a' is no condition on a row \(totl"),
        (
            {"expectations": {"table": {"a": "count(total) > 1"}}},
            r"'a' is no condition on a row \(count\(total\) > 1\)",
        ),
        (
            {"partition_by": {"table": ("hour",)}},
            "there is no column 'hour'; there are: .*, and date, the day of _time",
        ),
        ({"partition_by": {"table": ("a/b",)}}, "'a/b' cannot be the name of a folder"),
    ]:
        with pytest.raises(UsageError, match=message) as raised:
            Jobs(table.path, tmp_path / "into", **rules).run()
        assert "Relation" not in str(raised.value)  # of Spark's plans
    with pytest.raises(UsageError, match="there is no job 'x'; there are: clean:table, compact:table, reports"):
        Jobs(table.path, tmp_path / "into").run(job="x")


def test_reports_of_any_shape_and_size_are_landed_and_read_back(
    spark: Any, landed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = landed()
    table.land(range(5), time=1_700_000_000)

    def shapes(tables: dict[str, Any]) -> dict[str, Any]:
        return {
            "a/b": tables["table"].orderBy("total").selectExpr("total as n", "total as n", "array(total) as list"),
            "times": tables["table"].selectExpr("min(_time) as t", "cast(1.5 as decimal(4,2)) as d", "true as b"),
            "none": tables["table"].where("total < 0").select("word"),
        }

    monkeypatch.setattr("esault.spark.results.LANDED", 4)  # what is larger does not come through the driver
    jobs = Jobs(table.path, tmp_path / "into", reports=shapes, code="1")
    made = jobs.run().reports
    assert list(made) == ["a/b", "times", "none"]
    assert made["a/b"].columns == ("n", "n", "list")
    assert made["a/b"].rows[:2] == ((0, 0, "[0]"), (1, 1, "[1]"))
    assert made["a/b"].kinds == ("number", "number", "text")
    ((moment, number, flag),) = made["times"].rows
    assert (moment, float(number), flag) == (datetime.fromtimestamp(1_700_000_000, timezone.utc), 1.5, True)
    assert made["none"].rows == ()
    fewer = Jobs(table.path, tmp_path / "into", code="2")
    assert list(fewer.run().reports) == ["rows"]
    assert sorted(os.listdir(tmp_path / "into/reports")) == ["reports.json", "rows"]
