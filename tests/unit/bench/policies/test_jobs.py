"""Single runs of the comparison: each is kept as it ends, and a comparison that was stopped goes on."""

from __future__ import annotations

import json
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

import bench.policies.jobs as jobs
from bench.policies.jobs import Job, kept, run_jobs

LINE = {"load": "steps", "model": "count", "policy": "auto", "seed": 1, "share": 1.0, "p99_ms": 7.0}


# What this imports reads the departures of three months: half a second, for no worker but one.
@pytest.fixture(scope="module")
def bench():
    from bench.policies import __main__ as bench

    return bench


def silent(done, many, job):
    """Hear of a run and say nothing."""


def test_a_comparison_that_was_stopped_goes_on(bench, tmp_path):
    file = tmp_path / "compare.jsonl"
    first = bench._compare(tmp_path, True, 1, 0.02, False)
    lines = file.read_text().splitlines()
    assert len(lines) == len(first["rows"]) == 2 * len(bench.QUICK_POLICIES)
    # a run that is kept is not run again: what its line says counts
    row = json.loads(lines[0])
    row["p99_ms"] += 1000.0
    file.write_text(json.dumps(row) + "\n" + lines[1] + "\n" + lines[2][:40])
    again = bench._compare(tmp_path, True, 1, 0.02, True)
    assert [(r["load"], r["model"], r["policy"]) for r in again["rows"]] == [
        (r["load"], r["model"], r["policy"]) for r in first["rows"]
    ]
    for before, after in zip(first["rows"], again["rows"]):
        own = (before["load"], before["policy"]) == (row["load"], row["policy"])
        assert after["figures"]["p99_ms"]["median"] == before["figures"]["p99_ms"]["median"] + 1000.0 * own
        assert after["figures"]["workers"] == before["figures"]["workers"]
    assert sorted(map(len, map(json.loads, file.read_text().splitlines()))) == [len(row)] * len(lines)
    # without the option it begins anew
    assert bench._compare(tmp_path, True, 1, 0.02, False) == first


def test_a_line_that_was_cut_is_run_again(tmp_path):
    file = tmp_path / "rows.jsonl"
    assert kept(file) == {}
    file.write_text(json.dumps(LINE) + "\n" + json.dumps({**LINE, "seed": 2}))
    assert kept(file) == {Job("steps", "count", "auto", 1): LINE}
    assert file.read_text() == json.dumps(LINE) + "\n"


def test_rows_of_another_share_are_others(tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps(LINE) + "\n")
    assert Job("steps", "count", "auto", 1, 0.5) not in kept(file)


class Announced(ProcessPoolExecutor):
    """Says that it is shut down by a file, for which runs wait."""

    folder = Path()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        if wait:
            (self.folder / "over").touch()
        super().shutdown(wait=wait, cancel_futures=cancel_futures)
        (self.folder / "over").touch()


def begun(job: Job) -> dict[str, float]:
    folder = Path(job.load)
    (folder / f"run-{job.seed}").touch()
    while job.seed and not (folder / "over").exists():
        time.sleep(0.01)
    return {"p99_ms": float(job.seed)}


def test_what_has_not_begun_is_not_run_after_a_stop(tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "ProcessPoolExecutor", Announced)
    monkeypatch.setattr(Announced, "folder", tmp_path)
    todo = [Job(str(tmp_path), "count", "auto", seed) for seed in range(200)]
    file = tmp_path / "rows.jsonl"

    def stops(done, many, job):
        raise SystemExit(130)

    with pytest.raises(SystemExit):
        run_jobs(todo, begun, file, {}, stops)
    assert list(kept(file)) == todo[:1]
    assert 1 <= len(list(tmp_path.glob("run-*"))) < 100


def test_a_run_is_asked_for_once(tmp_path):
    (tmp_path / "over").touch()
    todo = [Job(str(tmp_path), "count", "auto", seed) for seed in (1, 2, 1)]
    done = {}
    run_jobs(todo, begun, tmp_path / "rows.jsonl", done, silent)
    assert done == kept(tmp_path / "rows.jsonl")
    assert sorted(job.seed for job in done) == [1, 2]
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 2
