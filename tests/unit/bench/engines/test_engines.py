"""The topologies of bench engines, tiny and in this process: their ends, and how their results are compared."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import pytest

NAMES = ("word_count", "flight_delays", "tpch_q3", "traffic", "sales")


def _made(name, folder, size=0.0004):
    from bench.engines.data import make, missing_data

    pytest.importorskip("duckdb")
    if why := missing_data(name):
        pytest.skip(why)
    return make(name, folder / "data", size)


def _local(spec, **params):
    from esault.runtime.session.request import Request
    from esault.runtime.session.run import execute
    from esault.topology.locate import locate

    return execute(Request(locate(spec), params, "local"))


@pytest.mark.parametrize("name", NAMES)
def test_what_a_topology_lands_is_what_a_database_answers_and_a_wrong_row_is_named(name, tmp_path):
    from bench.engines.answers import answer, difference, landed
    from bench.engines.data import file_of

    data = _made(name, tmp_path)
    right = answer(name, data.folder)
    report = _local(f"{file_of(name)}", **data.params(tmp_path / "out"))
    assert sum(report.units[spout].tuples_out for spout in data.spouts) == data.tuples
    found = landed(name, tmp_path / "out")
    count, wrong = difference(right, found)
    assert (count, wrong) == (sum(map(len, right.values())), None)
    table = next(iter(found))
    key = next(iter(found[table]), "no such key")
    found[table][key] = (-1,)
    assert (
        f"1 rows of {count:,} are wrong, such as {key!r} of {table}: (-1,) in place of" in difference(right, found)[1]
    )


@pytest.mark.parametrize("name", NAMES)
def test_ends_count_what_passes_and_read_no_more_than_they_are_told(name, tmp_path):
    import bench.engines.topologies as topologies
    from bench.engines.answers import answer, updates

    data = _made(name, tmp_path)
    measured = f"{topologies.__file__}:measured"
    rows = updates(name, answer(name, data.folder))
    _local(measured, folder=str(data.folder), out=str(tmp_path / "all"))
    said = [json.loads(line) for line in (tmp_path / "all").read_text().splitlines()]
    assert rows is None or sum(each.get("rows", 0) for each in said) == rows
    assert sum("begun" in each for each in said) == len(data.spouts)
    half = data.share(data.tuples // 2)
    report = _local(measured, folder=str(data.folder), out=str(tmp_path / "half"), tuples=data.tuples // 2)
    assert {spout: report.units[spout].tuples_out for spout in data.spouts} == half
    assert not (tmp_path / "all.landed").exists()


def test_latencies_are_those_of_rows_that_were_due_late_enough(tmp_path, monkeypatch):
    from bench.kit.steady_latency import TimedSink, percentiles, since

    sink = TimedSink(str(tmp_path / "out"))
    sink.open(None)
    for due, took, count in ((100.0, 9.0, 50), (200.0, 0.010, 98), (201.0, 1.0, 2)):
        monkeypatch.setattr("bench.workloads.topologies.time", SimpleNamespace(time=lambda at=due + took: at))
        sink.write_columns(["k"] * count, [0] * count, due, None)
    sink.close()
    p50, p99 = percentiles(since(tmp_path / "out", 150.0), (0.5, 0.99))
    assert p50 == pytest.approx(10.0, rel=0.05)
    assert p99 == pytest.approx(1000.0, rel=0.05)
    assert percentiles(since(tmp_path / "out", 300.0), (0.5,)) == [None]


def _result():
    spread = lambda value: {"median": value, "least": value / 2, "most": value * 2}
    actors = {
        "tuples_per_second": spread(2e5),
        "start_up_seconds": spread(0.5),
        "p50_ms": spread(0.4),
        "p99_ms": None,
        "sustained_tuples_per_second": 1.5e5,
    }
    spark = {
        "tuples_per_second": None,
        "start_up_seconds": 9.0,
        "p50_ms": 2000.0,
        "p99_ms": 4000.0,
        "behind_seconds": 2.0,
    }
    common = {"tuples": 1000, "checked_rows": 10, "rate": 5000.0, "actors": actors}
    return {
        "word_count": {**common, "spark": spark, "sql": {"tuples_per_second": 1e6}},
        "traffic": common,
        "tpch_q3": {"missing": "skipped: it rained"},
    }


def test_the_table_and_the_plot_have_each_engine_and_say_what_is_missing(tmp_path):
    from bench.engines.__main__ import _lines
    from bench.engines.plot import bars, draw

    found = _result()
    text = "\n".join(_lines(found))
    assert "200.0 k/s (100.0 k/s to 400.0 k/s)   sustained 150.0 k/s   p50 0.4 ms, p99 no row   start 0.50 s" in text
    assert "too quick to tell   p50 2,000.0 ms   p99 4,000.0 ms   2.0 s behind at the end   start 9.0 s" in text
    assert "Spark engine: not timed; its final rows are right" in text
    assert "tpch_q3: skipped: it rained" in text
    assert bars(found["word_count"])[0] == {
        "actors": (200.0, 100.0, 400.0),
        "plain Spark SQL, one batch": (1000.0, 1000.0, 1000.0),
    }
    pytest.importorskip("matplotlib")
    assert draw(tmp_path / "plot.png", found)
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
    assert not draw(tmp_path / "none.png", {"tpch_q3": found["tpch_q3"]})


def test_sparks_rate_leaves_out_its_start_and_bisection_takes_its_batches_for_granted(monkeypatch, tmp_path):
    from bench.engines import __main__ as engines
    from bench.engines.data import Data

    fastest, start, batch, asked = 1000.0, 8.0, 3.0, []

    def launch(module, *arguments, longest):
        given = dict(zip(arguments[1::2], arguments[2::2]))
        tuples, rate = given["--tuples"], given.get("--rate")
        asked.append(rate)
        seconds = start + tuples / fastest if rate is None else max(tuples / rate, tuples / fastest) + batch
        latency = {"p50": 1.0, "p99": 2.0}
        return {
            "read": tuples,
            "wrong": None,
            "seconds": seconds,
            "start_up_seconds": 9.0,
            "latency_ms": latency,
            "pace": {"tuples": tuples / 2, "seconds": tuples / 2 / fastest},
        }

    monkeypatch.setattr(engines, "launch", launch)
    monkeypatch.setitem(engines.RATES, "word_count", 100.0)
    sizes = SimpleNamespace(spark_seconds=20.0, spark_sustained=True, spark_runs=2)
    found = engines._spark(Data("word_count", tmp_path, {"lines": 40_000}), sizes)
    assert found["tuples_per_second"] == pytest.approx(fastest)
    assert found["behind_seconds"] == pytest.approx(batch, abs=0.1)
    assert found["sustained_tuples_per_second"] == pytest.approx(fastest)
    assert [trial["sustained"] for trial in found["trials"]] == [True, False]
    assert asked == [None, None, 100.0, 1000.0, 2000.0]


def test_the_pace_of_a_run_begins_behind_its_first_commits():
    from bench.kit.topology_run import Commits

    def seen(*commits):
        found = Commits(["a", "b"])
        for now, a, b in commits:
            units = [SimpleNamespace(name=name, tuples_out=out) for name, out in (("a", a), ("b", b), ("bolt", 7))]
            found(SimpleNamespace(now=now, units=units))
        return found.pace()

    assert seen((0.0, 0, 0), (5.0, 10, 0), (6.0, 20, 5), (6.1, 20, 5), (8.0, 60, 5), (9.0, 95, 5)) == {
        "tuples": 75,
        "seconds": 3.0,
    }
    # the first commit has more than a quarter
    assert seen((5.0, 60, 0), (7.0, 80, 20)) == {"tuples": 40, "seconds": 2.0}
    assert seen((5.0, 100, 0), (6.0, 100, 0)) is None


def test_a_topology_that_is_not_measured_is_refused_with_the_names_there_are(monkeypatch, capsys):
    from bench.engines import __main__ as engines

    monkeypatch.setattr(sys, "argv", ["engines", "--out", "x", "--only", "storm"])
    with pytest.raises(SystemExit) as caught:
        engines.main()
    assert caught.value.code == 2
    assert f"'storm'; write some of: {', '.join(NAMES)}" in capsys.readouterr().err
