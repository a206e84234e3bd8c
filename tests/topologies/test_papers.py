from __future__ import annotations

import json

import pyarrow as pa
import pytest
from running import drained, module, real, rows

from esault.errors import LocateError, TopologyError


def numbers(count, seed):
    """As the topologies' sources make them."""
    module("papers/craa.py")  # puts its folder on the path
    import slept

    return list(slept.numbers(count, seed))


def totals(sql, given, times=1):
    """Key -> (tuples, sum of their numbers), as a database adds up what was given, each row so many times."""
    keys, values = zip(*given)
    sql.register("given", pa.table({"key": keys, "n": values}))
    query = f"SELECT key, count(*) * {times}, sum(n)::BIGINT * {times} FROM given GROUP BY key"
    return {key: (count, total) for key, count, total in sql.execute(query).fetchall()}


def sent(local, unit, seed=1):
    """What a source has emitted."""
    return numbers(local.report().units[unit].tuples_out, seed)


QUICK = {"speed": 500.0, "seconds": 330}


@pytest.mark.slow
def test_linear_passes_each_tuple_once(sql):
    local = drained("papers/autoscale.py:linear", **QUICK, parallelism={"final": 3})
    given = sent(local, "source")
    assert 1200 < len(given) < 1500  # 5 minutes of 4/s and the beginning of the rise
    assert dict(rows(local, "totals")) == totals(sql, given)


def test_diamond_passes_each_tuple_on_three_ways(sql):
    local = drained("papers/autoscale.py:diamond", **QUICK)
    assert dict(rows(local, "totals")) == totals(sql, sent(local, "source"), times=3)


def test_star_brings_the_tuples_of_all_sources_to_each_final_operator(sql):
    local = drained("papers/autoscale.py:star", **QUICK)
    given = [row for i in (1, 2, 3) for row in sent(local, f"source-{i}", 1 + i)]
    for i in (1, 2, 3):
        assert dict(rows(local, f"totals-{i}")) == totals(sql, given)


def test_the_load_of_autoscale_is_that_of_the_paper_but_for_a_fifth():
    rate = module("papers/autoscale.py").rate
    for t, level in ((0, 4), (299, 4), (450, 4 * 35**0.5), (1000, 140), (1550, 100), (1700, 60), (1800, 30), (2000, 4)):
        assert 0.8 * level <= rate(t) <= 1.2 * level
    assert rate(1000) != rate(1001)


def test_loads_of_the_chain_are_those_of_the_paper():
    loads = module("papers/craa.py").LOADS
    assert [loads["step"](t) for t in (0, 5, 10, 15, 20, 25, 30)] == [1000, 2000, 5000, 6000, 5000, 2000, 1000]
    assert [loads["jitter"](t) for t in (0, 49, 50, 55, 154, 155, 160)] == [3000, 3000, 6000, 3000, 3000, 1000, 3000]
    assert [loads["stage"](t) for t in (0, 250, 350, 500)] == [5000, 10_000, 2000, 5000]
    assert loads["sine"](125) == pytest.approx(7500)
    with pytest.raises((TopologyError, LocateError), match="write one of step, jitter, sine, stage"):
        drained("papers/craa.py", load="calm")


def test_the_workers_loads_add_up_to_the_dissertations():
    rate = module("papers/migration.py").rate
    mid = [sum(rate(w, 60 * minute + 30) for w in range(1, 14)) for minute in range(10)]
    assert mid == [4500, 5500, 3500, 3500, 3500, 3000, 4500, 3500, 4500, 3000]
    assert sum(rate(w, 30, varied=False) for w in range(1, 14)) == 1000
    assert rate(3, 65) == 350  # half way up
    assert rate(1, 125) == 350  # half way down


@pytest.mark.slow
def test_the_linear_topology_on_real_processes(sql, tmp_path):
    real(tmp_path, "papers/autoscale.py:linear", speed=100.0, seconds=400)
    lines = [json.loads(line) for line in (tmp_path / "out/autoscale/linear.jsonl").read_text().splitlines()]
    found = {line["key"]: tuple(line["value"]) for line in lines}
    count = sum(tuples for tuples, _ in found.values())
    assert count > 1500
    assert found == totals(sql, numbers(count, 1))


@pytest.mark.slow
def test_the_chain_on_real_processes_passes_or_drops_each_tuple(tmp_path):
    # A second of 1000/s; the one sub-unit of O1 processes 500/s and holds 50, and what follows O1 is wide enough for that.
    report = tmp_path / "report.json"
    wide = [f"--parallelism={name}={n}" for name, n in (("O2", 2), ("O3", 2), ("O4", 3), ("O5", 6))]
    real(tmp_path, "papers/craa.py", "--policy", "none", f"--report={report}", *wide, seconds=1, scale=1.0)
    units = json.loads(report.read_text())["units"]
    passed = [json.loads(line)["value"] for line in (tmp_path / "out/craa.jsonl").read_text().splitlines()]
    dropped = {name: units[name]["dropped"] for name in ("O1", "O2", "O3", "O4", "O5")}
    assert len(passed) == len(set(passed))
    assert set(passed) <= set(range(1000))
    assert len(passed) + sum(dropped.values()) == units["source"]["tuples_out"] == 1000
    assert dropped["O1"] > 0


@pytest.mark.slow
def test_workers_with_copies_on_real_processes_count_each_event_once(sql, tmp_path):
    real(tmp_path, "papers/migration.py", "--slots", "20", workers=3, seconds=3, scale=0.5)
    for worker in (1, 2, 3):
        lines = [json.loads(line) for line in (tmp_path / f"out/migration/{worker}.jsonl").read_text().splitlines()]
        found = {line["key"]: tuple(line["value"]) for line in lines}
        count = sum(tuples for tuples, _ in found.values())
        assert count > 50
        assert found == totals(sql, numbers(count, worker))
