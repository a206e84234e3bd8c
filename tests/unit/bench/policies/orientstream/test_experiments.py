from __future__ import annotations

import csv
import json
import random
import subprocess
import sys
from pathlib import Path

import depth
import pytest


@pytest.mark.parametrize(
    ("delta", "mode", "expected"),
    [
        (0.25, "switch", (54, 109, 164)),
        (0.30, "switch", (35, 70, 105)),
        (0.40, "switch", (10.0, 20.0, 30.0)),
        (0.45, "switch", (1.8, 3.5, 5.2)),
        (0.50, "switch", (0.19, 0.19, 0.19)),
        (0.20, "literal", (0.54, 0.54, 0.54)),
        (0.30, "literal", (35, 70, 105)),
        (0.45, "literal", (2.3, 4.3, 5.8)),
        (0.50, "literal", (0.93, 0.93, 0.93)),
        (0.25, "always", (0.56, 0.56, 0.56)),
        (1.00, "always", (0.57, 0.57, 0.57)),
    ],
)
def test_the_queue_model_has_the_numbers_of_its_table(delta, mode, expected):
    from bench.policies.orientstream.model import latency_at, simulate

    passed = simulate(delta, mode)
    found = [latency_at(passed, at, mode != "switch") for at in (100, 200, 300)]
    assert found == [pytest.approx(value, rel=0.02, abs=0.02) for value in expected]


def test_grouped_no_slice_takes_as_long_as_the_threshold():
    from bench.policies.orientstream.model import simulate

    worst = max(p.from_release for delta in (0.2, 0.3, 0.4, 0.45, 0.5, 1.0) for p in simulate(delta, "always"))
    assert worst == pytest.approx(1.12, abs=0.005)


@pytest.mark.parametrize("system", ["switch", "literal", "always"])
@pytest.mark.parametrize("delta", [0.25, 0.45, 1.0])
def test_the_engines_pipelines_do_what_the_model_does(system, delta):
    from bench.policies.orientstream.model import latency_at, simulate
    from bench.policies.orientstream.stops import run

    mine, model = run(system, delta, 120.0).passed, simulate(delta, system, seconds=120.0)
    if system == "always":  # other pipelines may come first, so slices differ: windows do not
        assert max(p.from_release for p in mine) <= 1.15
        assert latency_at(mine, 118.5, width=45) == pytest.approx(latency_at(model, 118.5, width=45), abs=0.1)
    else:
        assert latency_at(mine, 100) == pytest.approx(latency_at(model, 100), rel=0.01)


def test_a_budget_keeps_the_threshold_from_arrival_with_fewer_changes_than_configurations():
    from bench.policies.orientstream.stops import run

    found = run("budget", 0.45, 60.0)
    assert found.worst_from_arrival < 1.5
    assert found.changes_per_window < run("always", 0.45, 60.0).changes_per_window


@pytest.mark.parametrize("query", ["TM", "WC", "Q3"])
@pytest.mark.parametrize("delta", [0.25, None])
def test_results_are_those_of_one_pipeline_and_would_not_be_without_the_map(query, delta):
    from bench.policies.orientstream.exact import compare
    from bench.policies.orientstream.stops import run

    found = compare(query, run("always", delta, 30.0), 3, seed=2)
    assert found["exact"]
    assert not found["exact without the map"]
    assert found["results"] > 50


def test_speed_of_the_vectors():
    from bench.policies.orientstream.exact import haversine, speed

    east, north = ((39.9, 116.400), (39.9, 116.401)), ((39.900, 116.4), (39.901, 116.4))
    assert (haversine(*east), speed(*east, 5)) == (pytest.approx(85.3049, abs=1e-3), pytest.approx(61.4195, abs=1e-3))
    assert (haversine(*north), speed(*north, 5)) == (
        pytest.approx(111.1949, abs=1e-3),
        pytest.approx(80.0603, abs=1e-3),
    )


def test_q3_of_the_vectors(tmp_path):
    from bench.policies.orientstream.exact import Q3

    tables = "--tables=customer,orders,lineitem"
    subprocess.run(
        [Path(sys.executable).with_name("tpchgen-cli"), "csv", "-s", "0.01", tables, "--output-dir", str(tmp_path)],
        check=True,
    )
    rows = [("c", int(r["c_custkey"]), r["c_mktsegment"]) for r in table(tmp_path, "customer")]
    rows += [
        ("o", int(r["o_orderkey"]), int(r["o_custkey"]), r["o_orderdate"], int(r["o_shippriority"]))
        for r in table(tmp_path, "orders")
    ]
    rows += [
        ("l", int(r["l_orderkey"]), round(100 * float(r["l_extendedprice"])), round(100 * float(r["l_discount"])),
         r["l_shipdate"])
        for r in table(tmp_path, "lineitem")
    ]  # fmt: skip
    assert [sum(r[0] == kind for r in rows) for kind in "col"] == [1500, 15_000, 60_175]
    kept = [r for r in rows if Q3.passes(r)]
    assert [sum(r[0] == kind for r in kept) for kind in "col"] == [337, 7286, 32_260]
    for seed in (None, 1):
        if seed is not None:
            random.Random(seed).shuffle(kept)
        q3 = Q3()
        for row in kept:
            q3.on(row)
        found = q3.rows()
        assert (q3.joined, len(found)) == ([1797, 356], 138)
        assert sum(revenue for _, revenue, _ in found) == 123_642_068_366
        assert found[:3] == [
            (47714, 2_670_105_894, "1995-03-11"),
            (22276, 2_663_515_562, "1995-01-29"),
            (32965, 2_637_683_414, "1995-02-25"),
        ]


def table(folder, name):
    with (folder / f"{name}.csv").open(newline="") as file:
        yield from csv.DictReader(file)


def test_samples_and_errors_of_the_trial():
    from bench.policies.orientstream.trial import errors, samples

    found = samples("TM", 400, 1)
    assert found == samples("TM", 400, 1) != samples("TM", 400, 2)
    assert all(0 <= s.cpu <= 100 and 0.5 <= s.x["rate"] <= 6 for s in found)
    assert errors([30, 50, 70, 50], [33, 48, 66, 51]) == {"mae": 2.5, "rae": 0.25}


def test_the_trial_has_every_model_in_every_variant():
    from bench.policies.orientstream.trial import VARIANTS, trial

    found = trial("TM", "cpu", 300, 1)
    assert set(found) == set(VARIANTS)
    assert all(len(models) == 9 for models in found.values())
    sound, wild = (found[v] for v in VARIANTS[:2])
    assert wild["naive Bayes"] == sound["naive Bayes"]
    assert sound["plain mean"]["mae"] < 20


@pytest.mark.slow
@pytest.mark.skipif(depth.PROFILE != "deep", reason="its parts have tests of their own; all of it: make test-deep")
def test_the_experiment_says_of_every_claim_whether_it_came_out():
    from bench.policies.orientstream.experiments import experiment, lines

    result = experiment(True, [1])
    json.dumps(result)
    names = [claim["claim"] for claim in result["claims"]]
    assert len(set(names)) == len(names)
    for number in (2, 3, 4, 5, 6, 7, 8):
        assert f"orientstream.O{number}" in names
    assert {"orientstream.O9.cpu", "orientstream.O9.memory", "orientstream.O10.memory"} <= set(names)
    assert all(isinstance(claim["reproduced"], bool) for claim in result["claims"])
    said = lines(result)
    assert sum("reproduced " in line and "orientstream." in line for line in said) == len(names)
