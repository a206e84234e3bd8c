from __future__ import annotations

import json
from collections import Counter

import pytest
from running import drained, module, real, rows

from bench.engines.answers import answer


@pytest.fixture
def traces(tmp_path):
    module("geolife.py").write(tmp_path / "traces", devices=20, fixes=300, bad=0.02)
    return tmp_path / "traces"


def wanted(traces):
    """By windows of SQL, from the same files."""
    roads = answer("traffic", traces)["roads"]
    return {road: (fixes, pytest.approx(kmh)) for road, (fixes, kmh) in roads.items()}


def test_the_average_of_each_road_and_hour_is_that_of_a_database(traces):
    local = drained("traffic.py", folder=traces, parallelism={"lines": 2, "map": 2, "speed": 2})
    roads = dict(rows(local, "roads"))  # the last average of each
    assert roads == wanted(traces)
    assert len(roads) > 200
    assert sum(fixes for fixes, _ in roads.values()) > 5000


def test_bad_lines_are_set_aside_with_the_reason(traces):
    local = drained("traffic.py", folder=traces)
    reasons = Counter(reason for _, (reason, _) in rows(local, "bad"))
    assert set(reasons) == {
        "2 fields, not 7",
        "no place on Earth: 400.166666, 116.4",
        "not later than the fix before it",
    }
    lines = 20 * 300
    assert 0.01 * lines < sum(reasons.values()) < 0.03 * lines
    assert local.report().units["lines"].tuples_out == lines + 2 * 20 * 6  # a head for each trip


def test_distances_are_those_of_the_haversine():
    distance = module("geolife.py").distance
    assert distance((39.9, 116.400), (39.9, 116.401)) == pytest.approx(85.3049, abs=1e-4)
    assert distance((39.900, 116.4), (39.901, 116.4)) == pytest.approx(111.1949, abs=1e-4)


def test_a_line_of_the_real_download_is_read():
    parse = module("geolife.py").parse
    assert parse("39.984702,116.318417,0,492,39744.1201851852,2008-10-23,02:53:04\r") == (
        1224730384.0,
        39.984702,
        116.318417,
    )
    assert parse("0,2,255,My Track,0,0,2,8421376\r") is None
    for line in (
        "",
        "39.9,116.3",
        "x,116.3,0,0,0,2008-10-23,02:53:04",
        "39.9,116.3,0,0,0,2008-10-23,late",
        "nan,1,0,0,0,2008-10-23,02:53:04",
    ):
        with pytest.raises(ValueError, match=r"."):
            parse(line)


def test_the_same_seed_writes_the_same_files(tmp_path):
    write = module("geolife.py").write
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        write(tmp_path / name, devices=3, fixes=50, bad=0.1, seed=seed)
    read = lambda name: {p.relative_to(tmp_path / name): p.read_bytes() for p in (tmp_path / name).rglob("*.plt")}
    assert read("a") == read("b") != read("c")
    assert len(read("a")) == 6


@pytest.mark.slow
def test_roads_on_real_processes(traces, tmp_path):
    import pyarrow.parquet as pq

    from esault.sinks.landing import parts

    real(tmp_path, "traffic.py", folder=traces, out="out")
    landed: dict[str, tuple[int, float]] = {}
    for part in parts(tmp_path / "out/roads"):
        for row in pq.read_table(part).to_pylist():
            landed[row["road"]] = max(landed.get(row["road"], (0, 0.0)), (row["fixes"], row["kmh"]))
    assert landed == wanted(traces)
    assert all(
        json.loads(line)["key"].endswith(".plt") for line in (tmp_path / "out/bad.jsonl").read_text().splitlines()
    )
