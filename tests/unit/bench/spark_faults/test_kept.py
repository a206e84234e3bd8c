"""What `bench.spark_faults` has written when it is stopped amid its faults."""

from __future__ import annotations

import json
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'esault[spark]'")

from bench.faults.count import rows_up_to_now
from bench.spark_faults import __main__ as bench
from bench.spark_faults.topology import EACH
from bench.spark_faults.trial import Lost, Trial

KEPT = Path(__file__).parents[4] / "bench" / "results" / "spark_faults"


def row(key: str, n: int) -> str:
    return json.dumps({"key": key, "value": {"n": n}}) + "\n"


class Quick(Trial):
    """Faults behind each of which an epoch ends at once; nothing is computed."""

    #: the fault that ends the bench, and how
    ends_at, ends_with = 99, KeyboardInterrupt
    doubled = 0

    def start(self) -> None:
        self.commands += 1

    def kill(self) -> None:
        pass

    def done(self) -> int:
        return len(self.done_so_far)

    def computing(self) -> bool:
        return True

    def until_after(self, epoch: int) -> int:
        if sum(map(len, self.happened.values())) >= self.ends_at:
            raise self.ends_with("no epoch")
        self.done_so_far.append(epoch)
        with (self.folder / "out.jsonl").open("a") as rows:
            rows.write(row("k1", EACH * len(self.done_so_far)))
        return len(self.done_so_far)

    @property
    def done_so_far(self) -> list[int]:
        return self.__dict__.setdefault("_done", [])

    def _do(self, kind: str) -> bool:
        return True

    def _until_drained(self) -> None:
        pass

    def _counted(self, number: int) -> dict[str, int]:
        return {**dict.fromkeys(bench.WRONG, 0), "rows": 5, "doubled": self.doubled}


def run(monkeypatch: pytest.MonkeyPatch, out: Path, seed: int, faults: int = 20, **said: Any) -> None:
    monkeypatch.setattr(bench, "Trial", type("Told", (Quick,), said))
    monkeypatch.setattr(bench, "SparkCluster", lambda folder: nullcontext(SimpleNamespace(names=("w0", "w1"))))
    monkeypatch.setattr(
        "bench.spark_faults.trial.time",
        SimpleNamespace(sleep=lambda seconds: None, time=time.time, monotonic=time.monotonic),
    )
    monkeypatch.setattr("tempfile.mkdtemp", lambda prefix, dir: str(out / f"run-{seed}"))
    (out / f"run-{seed}").mkdir(exist_ok=True)
    monkeypatch.setattr(sys, "argv", ["spark_faults", "--out", str(out), "--seed", str(seed), "--runs", str(faults)])
    bench.main()


def kept(out: Path) -> list[dict[str, Any]]:
    return json.loads((out / "result.json").read_text())["runs"]


def test_a_bench_that_is_stopped_keeps_the_faults_behind_which_an_epoch_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(monkeypatch, tmp_path, 1)
    (whole,) = kept(tmp_path)
    assert (whole["seed"], whole["faults"], whole["over"]) == (1, 20, True)
    assert sum(map(len, whole["by_kind"].values())) == 20
    assert "stopped early" not in (tmp_path / "result.txt").read_text()
    with pytest.raises(KeyboardInterrupt):
        run(monkeypatch, tmp_path, 2, ends_at=7)
    first, second = kept(tmp_path)
    assert first == whole
    assert (second["seed"], second["over"]) == (2, False)
    assert 7 <= second["faults"] == sum(map(len, second["by_kind"].values())) < 20
    assert second["rows"] > 0 and second["rows_lost"] == second["rows_doubled"] == 0
    said = (tmp_path / "result.txt").read_text()
    assert f"{20 + second['faults']} faults" in said
    assert f"1 of 2 runs stopped early: of {second['rows']} rows those up to the newest" in said
    run(monkeypatch, tmp_path, 3, faults=4)
    assert [each["seed"] for each in kept(tmp_path)] == [1, 2, 3]
    with pytest.raises(SystemExit, match="seed 2 is counted there already"):
        run(monkeypatch, tmp_path, 2)
    assert not list(tmp_path.glob("*.part"))


def test_a_run_that_does_not_go_on_keeps_what_was_counted_before(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(SystemExit, match=r"lost after \d+ faults: no epoch"):
        run(monkeypatch, tmp_path, 1, ends_at=5, ends_with=Lost)
    assert [(each["over"], each["faults"] >= 5) for each in kept(tmp_path)] == [(False, True)]


def test_wrong_counts_end_the_bench_and_are_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="not exact: doubled"):
        run(monkeypatch, tmp_path, 1, doubled=3)
    assert kept(tmp_path)[0]["doubled"] == 3
    assert (tmp_path / "run-1").exists()


def test_rows_of_a_run_under_way_are_compared_up_to_the_newest_of_each_key(tmp_path: Path) -> None:
    assert rows_up_to_now(tmp_path, 10) == {"rows": 0, "rows_lost": 0, "rows_doubled": 0}
    rows = [row("a", 10), row("a", 20), row("b", 10), row("a", 30), row("b", 20), '{"key": "b", "val']
    (tmp_path / "out.jsonl").write_text("".join(rows))
    assert rows_up_to_now(tmp_path, 10) == {"rows": 5, "rows_lost": 0, "rows_doubled": 0}
    (tmp_path / "out.jsonl").write_text("".join([*rows[:1], *rows[2:5], row("b", 10)]))
    assert rows_up_to_now(tmp_path, 10) == {"rows": 5, "rows_lost": 1, "rows_doubled": 1}


def test_the_result_that_is_kept_can_be_said_again_when_faults_are_added() -> None:
    runs = json.loads((KEPT / "result.json").read_text())["runs"]
    assert "\n".join(bench._said(runs)[0]) + "\n" == (KEPT / "result.txt").read_text()
