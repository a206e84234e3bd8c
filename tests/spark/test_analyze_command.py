"""`esault analyze` as it is used: on a topology's tables, on a folder, on the metrics of runs, and killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import esault
from esault import run
from esault.cli.main import main
from esault.sinks.landing import parts
from esault.spark.elasticity import demanded, elasticity
from esault.spark.pipeline import Pipeline
from esault.spark.tables.history import runs_in

pq = pytest.importorskip("pyarrow.parquet")

TOPOLOGY = """
from esault import Topology
from esault.sinks import SparkTable
from esault.sources import Items

expectations = {"table": {"a small number": "n < 8"}}

def topology():
    t = Topology("small")
    rows = t.spout("rows", Items([(f"w{n % 3}", n) for n in range(10)]))
    rows.sink("table", SparkTable("out/table", columns={"word": str, "n": int}, mode="replace"))
    return t

def reports(tables):
    return {"sums": tables["table"].groupBy("word").agg({"n": "sum"}).toDF("word", "sum").orderBy("word")}
"""


def call(capsys: Any, *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    out = capsys.readouterr()
    return int(ended.value.code or 0), out.out, out.err


def test_analyze_lists_runs_plots_and_does_nothing_twice(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("small.py").write_text(TOPOLOGY)
    assert call(capsys, "run", "small.py", "--engine", "local", "--plain")[0] == 0
    code, out, _ = call(capsys, "analyze", "small.py", "--list")
    assert code == 0
    assert "10 rows in 1 part: all, since it is the first time" in out
    assert not Path("out/analytics").exists()
    code, out, err = call(capsys, "analyze", "small.py", "--plot", "plots")
    assert code == 0, err
    assert "quarantine of table: 2 rows in " in out
    assert "  2: not as expected: a small number" in out
    assert "sums\nword  sum\n----  ---\nw0      9\nw1     12\nw2      7\nplot: plots/sums.png" in out
    assert "clean table: 8 rows kept, 2 put into the quarantine" in err
    code, out, err = call(capsys, "analyze", "small.py")
    assert (code, err) == (0, "nothing is new; all stands in out/analytics/small (--full does all again)\n")
    assert "w1     12" in out
    code, out, err = call(capsys, "analyze", "small.py", "--list")
    assert out.count("up to date") == 2
    Path("small.py").write_text(TOPOLOGY.replace('"sums"', '"totals"'))
    code, out, err = call(capsys, "analyze", "small.py")
    assert err == "report 'totals' ...\n"
    code, out, err = call(capsys, "analyze", "small.py", "--full", "--job", "clean:table")
    assert "all of them (it was asked for)" in err
    assert "totals" not in out
    code, out, _ = call(capsys, "analyze", "out", "--direct")
    assert "table rows per" in out or "table by run" in out
    assert call(capsys, "analyze", "small.py", "--direct", "--full")[0] == 2
    assert "there is no job 'x'; there are: clean:table" in call(capsys, "analyze", "small.py", "--job", "x")[2]


@pytest.mark.timeout(300)
def test_a_command_that_is_killed_and_started_again_makes_the_same_tables(
    spark: Any, landed: Any, young: dict[str, str], tmp_path: Path
) -> None:
    table = landed("landed")
    for first in range(0, 3000, 100):
        table.land(range(first, first + 100), [f"i{n}" for n in range(first, first + 100)])
    into = tmp_path / "into"
    command = [sys.executable, "-m", "esault", "analyze", str(table.path), "--into", str(into), "--master", "local[1]"]
    with subprocess.Popen(command, env=young, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
        clean = into / "clean" / "landed"
        until = time.monotonic() + 240
        while time.monotonic() < until and process.poll() is None:
            if clean.exists() and any(name.startswith(".staging") for name in os.listdir(clean)):
                break  # Spark writes
            time.sleep(0.01)
        assert process.poll() is None
        process.send_signal(signal.SIGKILL)
    said: list[str] = []
    outcome = Pipeline({"landed": str(table.path)}, str(into), say=said.append).run()
    assert outcome.cleaned["clean:landed"].kept == 3000
    totals = [n for part in parts(clean) for n in pq.read_table(part, partitioning=None)["total"].to_pylist()]
    assert sorted(totals) == list(range(3000))
    assert not any(name.startswith(".staging") for name in os.listdir(clean))


def metrics(tmp_path: Path) -> Path:
    """The metrics of a short run on the local engine."""
    from esault import Topology
    from esault.sinks import Collect
    from esault.sources import Items, Paced

    def topology() -> Topology:
        t = Topology("paced")
        rows = t.spout("rows", Paced(Items([(str(n % 7), n) for n in range(300)]), rate=120))
        rows.key_by(lambda value: str(value % 7)).reduce("count", lambda total, value: total + 1, initial=0).sink(
            "rows", Collect()
        )
        return t

    for _ in range(2):
        run(topology, engine="local", land_metrics=tmp_path / "metrics")
    return tmp_path / "metrics"


def test_the_metrics_of_runs_are_reported_on(spark: Any, tmp_path: Path, capsys: Any) -> None:
    folder = metrics(tmp_path)
    code, out, err = call(capsys, "analyze", str(folder), "--plot", str(tmp_path / "plots"))
    assert code == 0, err
    for name in ("runs", "elasticity", "parallelism over time", "rate against parallelism", "changes"):
        assert f"\n{name}\n" in out
    assert out.count("paced     drained") >= 2
    assert "count x 1" in out
    assert "parallelism-over-time.png" in os.listdir(tmp_path / "plots")


def test_spec_metrics_are_those_of_the_elasticity_bench(spark: Any) -> None:
    from bench.elastic.figures import spec_metrics

    widths = [1, 1, 2, 4, 4, 4, 3, 1, 1, 2]
    needed = [1, 2, 4, 4, 3, 3, 1, 1, 2, 2]
    rows = [("r", "u", "t", float(i + 1), 1.0, w, float(w), n) for i, (w, n) in enumerate(zip(widths, needed))]
    columns = ["_run", "unit", "topology", "t", "seconds", "sub_units", "parallelism", "needed"]
    (ours,) = elasticity(spark.createDataFrame(rows, columns)).collect()
    trace, wanted = ([(float(i), n) for i, n in enumerate(numbers)] for numbers in (widths, needed))
    theirs = spec_metrics(trace, wanted, 10.0)
    for name in ("accuracy_under", "accuracy_over", "timeshare_under", "timeshare_over", "jitter_per_minute"):
        assert ours[name.replace("_", " ")] == pytest.approx(theirs[name]), name
    assert ours["worker-seconds"] == sum(widths)


def test_the_demand_counts_what_a_source_has_due_and_cannot_hand_on(spark: Any) -> None:
    columns = [
        "_run",
        "unit",
        "kind",
        "t",
        "seconds",
        "sub_units",
        "parallelism",
        "arrivals",
        "emitted",
        "lag",
        "service",
    ]
    kinds = "_run string, unit string, kind string, t double, seconds double, sub_units int, parallelism double, "
    kinds += "arrivals double, emitted double, lag bigint, service double"
    spout = [("r", "s", "spout", t, 1.0, 1, 1.0, e, e, lag, None) for t, e, lag in [(1.0, 100.0, 0), (2.0, 100.0, 100)]]
    bolt = [("r", "b", "bolt", t, 1.0, 1, 1.0, 200.0, 0.0, None, s) for t, s in [(1.0, 0.01), (2.0, None)]]
    rows = demanded(spark.createDataFrame([*spout, *bolt], kinds)).orderBy("t").collect()
    assert columns[0] in rows[0]
    # 200/s of 10 ms are two sub-units' work, 2.5 at 80 %; in the second window twice as much was due
    assert [row["needed"] for row in rows] == [3, 5]


TABLES = """
from esault import Topology
from esault.sinks import SparkTable
from esault.sources import Items

def topology():
    t = Topology("small")
    rows = t.spout("rows", Items([(f"w{n % 3}", n) for n in range(10)]))
    rows.sink("landed", SparkTable("out/table", columns={"word": str, "n": int}, mode="append"))
    return t

def pipeline(tables):
    @tables.table(expect_all_or_quarantine={"a small number": "n < 8"})
    def small(landed):
        return landed.select("word", "n")

    @tables.table(keys=["word"], merge={"n": "sum"})
    def sums(small):
        return small.groupBy("word").agg({"n": "sum"}).withColumnRenamed("sum(n)", "n")
"""


@pytest.mark.timeout(900)
def test_it_follows_what_lands_until_it_is_stopped(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("small.py").write_text(TABLES)
    land = ("run", "small.py", "--engine", "local", "--plain")
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            with pytest.raises(SystemExit):
                main(list(land))
        elif len(waits) == 5:
            raise KeyboardInterrupt

    monkeypatch.setattr("esault.cli.analyze.time", SimpleNamespace(sleep=sleep, time=time.time))
    assert call(capsys, *land)[0] == 0
    code, _, err = call(capsys, "analyze", "small.py", "--job", "tables", "--follow", "--retries", "1")
    assert (code, err.splitlines()[-1]) == (0, "stopped")
    sums = {row["word"]: row["n"] for row in esault.read("out/analytics/small/tables/sums").to_pylist()}
    assert sums == {"w0": 18, "w1": 24, "w2": 14}
    assert len(runs_in("out/analytics/small")) == 2
    for options, message in [
        (("--follow", "--every", "5"), "give one of them"),
        (("--backfill", "n = 1"), "by --job table:NAME"),
        (("--backfill", "n = 1", "--job", "table:sums"), "is no table of rows that are added"),
        (("--backfill", "n = 1", "--job", "table:none"), "there is no table 'none'; there are: small, sums"),
        (("--direct", "--history"), "--direct keeps nothing"),
    ]:
        code, _, err = call(capsys, "analyze", "small.py", *options)
        assert code == 2, err
        assert message in err


STRICT = """
from esault import Topology
from esault.sinks import SparkTable
from esault.sources import Items

def topology(first: int = 0):
    t = Topology("strict")
    rows = t.spout("rows", Items([(n, ()) for n in range(first, first + 5)]))
    rows.sink("landed", SparkTable("out/table", columns={"n": int}, mode="append"))
    return t

def pipeline(tables):
    @tables.table(expect_all_or_fail={"a small number": "n < 8"})
    def small(landed):
        return landed.select("n")
"""


@pytest.mark.timeout(900)
def test_rows_that_must_not_come_fail_each_run_until_the_file_is_mended(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("strict.py").write_text(STRICT)
    waits: list[float] = []

    def land(first: int) -> None:
        with pytest.raises(SystemExit) as ended:
            main(["run", "strict.py", "--engine", "local", "--plain", "--set", f"first={first}"])
        assert ended.value.code in (0, None)

    def rows() -> list[int]:
        return sorted(row["n"] for row in esault.read("out/analytics/strict/tables/small").to_pylist())

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) in (2, 4):
            assert rows() == [0, 1, 2, 3, 4]
            land(5)
        elif len(waits) == 7:
            raise KeyboardInterrupt

    monkeypatch.setattr("esault.cli.analyze.time", SimpleNamespace(sleep=sleep, time=time.time))
    land(0)
    code, _, err = call(capsys, "analyze", "strict.py", "--job", "tables", "--follow", "--retries", "2")
    assert (code, err.splitlines()[-1]) == (0, "stopped")
    assert [run["ok"] for run in runs_in("out/analytics/strict")] == [True, False, False]
    assert rows() == [0, 1, 2, 3, 4]
    Path("strict.py").write_text(STRICT.replace("or_fail", "or_drop"))
    assert call(capsys, "analyze", "strict.py", "--job", "tables")[0] == 0
    assert rows() == [0, 1, 2, 3, 4, 5, 5, 6, 6, 7, 7]


KILLS = """
import os
import signal

from esault import Topology
from esault.sinks import SparkTable
from esault.sources import Items

def topology():
    t = Topology("kills")
    rows = t.spout("rows", Items([(n, ()) for n in range(10)]))
    rows.sink("landed", SparkTable("out/table", columns={"n": int}, mode="append"))
    return t

def pipeline(tables):
    @tables.table
    def small(landed):
        if not os.path.exists("killed"):
            open("killed", "w").close()
            java = landed.sparkSession.sparkContext._gateway.proc
            os.kill(java.pid, signal.SIGKILL)
        return landed.select("n")
"""


@pytest.mark.timeout(600)
def test_a_run_whose_java_is_killed_is_tried_again_though_nothing_lands(young: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "kills.py").write_text(KILLS)
    command = [sys.executable, "-m", "esault"]
    said: dict[str, Any] = {"cwd": tmp_path, "env": young, "text": True}
    subprocess.run([*command, "run", "kills.py", "--engine", "local", "--plain"], check=True, **said)
    analyze = [*command, "analyze", "kills.py", "--job", "tables", "--follow", "--master", "local[1]"]
    made = tmp_path / "out" / "analytics" / "kills" / "tables" / "small"
    with subprocess.Popen(analyze, stderr=subprocess.PIPE, **said) as process:
        assert process.stderr is not None
        lines = []
        for line in process.stderr:
            lines.append(line)
            if line.startswith("table small: 10 rows written"):
                process.send_signal(signal.SIGINT)
        assert process.wait(120) == 0
    text = "".join(lines)
    assert "this run failed: Spark's Java (process " in text, text
    assert " was killed (SIGKILL)" in text
    assert "\ntried again in 1 s\n" in text
    assert "Traceback" not in text
    assert (tmp_path / "killed").exists()
    assert sorted(row["n"] for row in esault.read(made).to_pylist()) == list(range(10))
