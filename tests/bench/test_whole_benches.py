"""The benches run from end to end; what they measure decides nothing here.

A bench takes seconds of a processor at its smallest: all of them run in the deep run, in others the simulator here, and
runs that are measured in `test_real.py` and `test_flows.py`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import depth
import kafka_broker
import pytest

ROOT = Path(__file__).parents[2]
#: a busy machine takes long for many processes; no time decides anything here
pytestmark = pytest.mark.timeout(300)
deep = pytest.mark.skipif(depth.PROFILE != "deep", reason="in the deep run: make test-deep")


def run(name, folder, *arguments):
    """The result of a bench."""
    done = subprocess.run(
        [sys.executable, "-m", f"bench.{name}", *arguments, "--out", str(folder)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads((folder / "result.json").read_text())
    assert result["bench"] == name
    return result


@pytest.mark.slow
@deep
@pytest.mark.parametrize("name", ["throughput", "latency"])
def test_a_bench_writes_its_result(name, tmp_path):
    pytest.importorskip("pyarrow")
    # The peers have tests of their own, in test_flows.py.
    more = ("--peers", "none") if name == "throughput" else ("--quick",)
    result = run(name, tmp_path, "--runs", "1", "--scale", "0.02", *more)
    assert result["machine"]["cores"] > 0
    assert result["seed"] == 1
    groups = result["A"] if name == "throughput" else next(iter(result["C"].values()))
    assert groups["esault"]["runs"][0]["rows"] > 0
    assert (tmp_path / "result.txt").read_text()


@deep
@pytest.mark.slow
def test_calls_that_wait_are_counted_beside_those_that_block(tmp_path):
    result = run("async_calls", tmp_path, "--quick", "--runs", "1")
    rates = result["calls_per_second"]
    # A few calls, whose results come together: what they are compared with is theirs, not a clock.
    assert 0 < rates["plain def"]["median"] < rates["async, concurrency=16"]["median"]


@deep
@pytest.mark.slow
def test_three_hosts_are_measured_beside_one(tmp_path):
    parts = ("--only", "throughput", "--only", "links")
    result = run("hosts", tmp_path, "--quick", "--scale", "0.2", *parts)
    for name in ("one host", "three hosts"):
        assert result["throughput"][name]["runs"][0]["words"] > 0
    assert result["links"]["tls"]["4096"]["sender_us"]["median"] > 0


@deep
@pytest.mark.slow
def test_what_things_cost_is_measured_beside_the_defaults(tmp_path):
    pytest.importorskip("pyarrow")
    result = run("costs", tmp_path, "--quick", "--runs", "1", "--scale", "0.02", "--only", "no acks,linger 5 ms")
    assert list(result["changes"]) == ["defaults", "no acks", "linger 5 ms"]
    assert set(result["latency"]) == set(result["changes"])
    assert set(result["throughput"]) == {*result["changes"], "row ids and a SparkTable"}
    assert result["throughput"]["defaults"]["words_per_second"]["ratio"]["median"] == 1.0


@deep
@pytest.mark.slow
def test_what_lands_is_reported_by_spark(tmp_path):
    for package in ("pyarrow", "pyspark"):
        pytest.importorskip(package)
    result = run("landing", tmp_path, "--quick", "--scale", "0.01")
    assert result["landing"]["rows"] == 20_000
    assert {"starting", "reading"} <= set(result["analyze"]["steps"])


@deep
@pytest.mark.slow
def test_scale_writes_its_result(tmp_path):
    result = run("scale", tmp_path, "--quick", "--scale", "0.1")
    for name in ("slept", "paced", "paced_probed"):
        assert list(result[name]) == ["1", "16"]
        for group in result[name].values():
            assert all(run["rows"] == run["offered"] > 0 for run in group["runs"])
    assert list(result["slept_keys_as_they_come"]) == ["16"]
    assert list(result["table"]) == ["10", "100", "1000", "10000"]
    assert "10,000 intervals" in (tmp_path / "result.txt").read_text()


@deep
@pytest.mark.slow
def test_a_live_change_is_measured_beside_stop_and_start(tmp_path):
    pytest.importorskip("numpy")
    for case in run("rescale", tmp_path, "--quick", "--scale", "0.02")["cases"]:
        for engine in case["engines"].values():
            counts = engine["counts"]
            assert counts["offered"] > 0
            assert (counts["lost"], counts["repeated"], counts["wrong_counts"]) == (0, 0, 0)
        live = case["engines"]["esault, live"]
        assert all(live[kind]["moved_keys"]["median"] > 0 for kind in ("split", "move", "merge"))


@deep
@pytest.mark.slow
def test_what_copies_bring_when_one_dies_is_measured(tmp_path):
    result = run("replicas", tmp_path, "--quick", "--runs", "1", "--scale", "0.5")
    (run_with_copies,) = result["killed"]["2"]
    assert run_with_copies["deaths"] == 1
    assert (run_with_copies["missing"], run_with_copies["repeated"], run_with_copies["replayed"]) == (0, 0, 0)
    assert set(result["free"]["2"][0]["busy_us"]) == {"source", "count", "count~1", "count~merger"}


@deep
@pytest.mark.slow
def test_users_work_is_measured_beside_a_plain_loop(tmp_path):
    result = run("real", tmp_path, "--quick", "--scale", "0.01", "--only", "steps")
    work = result["work"]["steps"]
    for engine in ("esault", "plain loop"):
        assert work["engines"][engine]["rows_out"] == work["rows_in"] > 0
        assert work["engines"][engine]["pss_mib"] > 0
    assert work["ratios"]["plain"]["rows_per_second"]["median"] > 0
    assert "against plain loop" in (tmp_path / "result.txt").read_text()


def test_the_loads_are_the_same_on_every_run():
    sys.path.insert(0, str(ROOT))
    try:
        from bench.workloads.loads import records, sentences
    finally:
        sys.path.remove(str(ROOT))
    assert sentences(5) == sentences(5)
    assert all(len(s.split()) == 10 for s in sentences(20))
    assert records(100) == records(100)
    assert len({k for k, _ in records(20_000)}) == 1000


@pytest.mark.slow
def test_policies_are_compared_in_the_simulator(tmp_path):
    result = run("policies", tmp_path, "--quick", "--only", "compare", "--scale", "0.08")
    ranked = {row["policy"]: row for row in result["ranking"]}
    rows = json.loads((tmp_path / "compare.json").read_text())["rows"]
    workers = {(row["load"], row["policy"]): row["figures"]["workers"]["median"] for row in rows}
    loads = {load for load, _ in workers}
    assert len(loads) == 2
    # 3000 tuples/s of 4 ms keep 12 sub-units busy, 15 at 80 % of their time, and those are there from the first moment to the last
    assert all(workers[load, "fixed peak"] == pytest.approx(15) for load in loads)
    share = sum(workers[load, "auto"] / 15 for load in loads) / 2
    assert ranked["auto"]["of_fixed_peak"] == pytest.approx(share)
    assert 0.3 < share < 0.95
    assert ranked["fixed peak"]["changes_per_load_change"] == 0 < ranked["auto"]["changes_per_load_change"]
    assert "front: loads on which" in (tmp_path / "result.txt").read_text()
    again = run("policies", tmp_path, "--quick", "--only", "")
    assert again["ranking"] == result["ranking"]  # what was left is shown again


@deep
@pytest.mark.slow
def test_a_plan_is_compared_with_a_live_run(tmp_path):
    run("policies", tmp_path, "--quick", "--only", "plan")
    (case,) = json.loads((tmp_path / "plan.json").read_text())["cases"]
    assert len(case["planned"]) == 6
    (lived,) = case["live"]
    assert lived["amiss"] == 0
    assert lived["most"] > lived["mean"] > 1 and lived["changes"] >= 2 and lived["p99"] > 0.1
    assert "planned: with what was measured" in (tmp_path / "result.txt").read_text()


@deep
@pytest.mark.slow
def test_queries_of_nexmark_are_compared_and_measured(tmp_path):
    pytest.importorskip("duckdb")
    result = run("nexmark", tmp_path, "--quick", "--scale", "0.05", "--queries", "q2")
    query = result["queries"]["q2"]
    assert query["rows"] > 0
    assert query["checked_rows"] > 0
    assert query["sustained_events_per_second"] > 0
    assert len(query["trials"]) >= 2


@deep
@pytest.mark.slow
def test_messages_survive_faults_and_rates_are_measured(tmp_path):
    pytest.importorskip("confluent_kafka")
    try:
        kafka_broker.jars()
    except kafka_broker.NotToBeHadError as error:
        pytest.skip(str(error))
    result = run("kafka", tmp_path, "--quick", "--faults", "3", "--scale", "0.1")
    assert result["faults"]["messages"] > 0
    assert result["faults"]["lost"] == result["faults"]["doubled"] == 0
    assert min(its["per_second"]["least"] for its in result["rates"].values()) > 0
