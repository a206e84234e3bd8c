"""The benches run from end to end; what they measure decides nothing here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(name, folder, *arguments):
    """The result of a bench."""
    done = subprocess.run(
        [sys.executable, "-m", f"bench.{name}", *arguments, "--out", str(folder)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads((folder / "result.json").read_text())
    assert result["bench"] == name
    return result


@pytest.mark.slow
@pytest.mark.parametrize("name", ["throughput", "latency"])
def test_a_bench_writes_its_result(name, tmp_path):
    pytest.importorskip("pyarrow")
    # The heavy peers have tests of their own, in bench/test_flows.py.
    more = ("--peers", "bytewax") if name == "throughput" else ()
    result = run(name, tmp_path, "--runs", "1", "--scale", "0.02", *more)
    assert result["machine"]["cores"] > 0
    assert result["seed"] == 1
    groups = result["A"] if name == "throughput" else next(iter(result["C"].values()))
    assert groups["esault"]["runs"][0]["rows"] > 0
    assert (tmp_path / "result.txt").read_text()


@pytest.mark.slow
def test_hops_add_up_to_the_whole(tmp_path):
    result = run("hops", tmp_path, "--quick", "--runs", "3", "--topology", "words", "--scale", "0.1")
    assert "unpack" in (tmp_path / "result.txt").read_text()
    assert result["seed"] == 1


@pytest.mark.slow
def test_what_things_cost_is_measured_beside_the_defaults(tmp_path):
    pytest.importorskip("pyarrow")
    result = run("costs", tmp_path, "--quick", "--runs", "1", "--scale", "0.02")
    assert set(result["latency"]) == set(result["changes"])
    assert set(result["throughput"]) == {*result["changes"], "row ids and a SparkTable"}
    assert result["throughput"]["defaults"]["words_per_second"]["ratio"]["median"] == 1.0


@pytest.mark.slow
def test_what_lands_is_reported_by_spark(tmp_path):
    for package in ("pyarrow", "pyspark"):
        pytest.importorskip(package)
    result = run("landing", tmp_path, "--quick", "--scale", "0.01")
    assert result["landing"]["rows"] == 20_000
    assert {"starting", "reading"} <= set(result["analyze"]["steps"])


@pytest.mark.slow
def test_scale_writes_its_result(tmp_path):
    result = run("scale", tmp_path, "--quick", "--scale", "0.1")
    for name in ("slept", "paced", "paced_probed"):
        assert list(result[name]) == ["1", "4", "16"]
        for group in result[name].values():
            assert all(run["rows"] == run["offered"] > 0 for run in group["runs"])
    assert list(result["slept_keys_as_they_come"]) == ["16"]
    assert list(result["table"]) == ["10", "100", "1000", "10000"]
    assert "10,000 intervals" in (tmp_path / "result.txt").read_text()


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


def test_the_loads_are_the_same_on_every_run():
    sys.path.insert(0, str(ROOT))
    try:
        from bench.loads import records, sentences
    finally:
        sys.path.remove(str(ROOT))
    assert sentences(5) == sentences(5)
    assert all(len(s.split()) == 10 for s in sentences(20))
    assert records(100) == records(100)
    assert len({k for k, _ in records(20_000)}) == 1000
