"""What `bench.pipelines` has written when it is stopped amid its kills."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.pipelines import __main__ as bench
from bench.pipelines.trial import Trial


class Shop(Trial):
    """Commands that are killed each time, or end at once, as it is said; nothing is computed."""

    stops_behind = 99
    wrong_rows = 0

    def land(self) -> None:
        self._landings += 1

    def end(self) -> None:
        self.commands += 1
        self.ended += 1

    def check(self) -> None:
        self.wrong["tables sold"] += self.wrong_rows

    def _kill_one(self) -> bool:
        if self.kills.total() == self.stops_behind:
            raise KeyboardInterrupt
        self.commands += 1
        self.kills["the command"] += 1
        self.moments["clean sales"] += 1
        return True


def run(monkeypatch: pytest.MonkeyPatch, out: Path, seed: int, *options: str, **said: int) -> None:
    monkeypatch.setattr(bench, "Trial", type("Told", (Shop,), said))
    monkeypatch.setattr("tempfile.mkdtemp", lambda prefix, dir: str(out / f"rows-{seed}"))
    (out / f"rows-{seed}").mkdir(exist_ok=True)
    monkeypatch.setattr(
        sys, "argv", ["pipelines", "--out", str(out), "--seed", str(seed), "--runs", "5", "--only", "kills", *options]
    )
    bench.main()


def kept(out: Path) -> list[dict[str, Any]]:
    return json.loads((out / "result.json").read_text())["kills"]


def test_a_bench_that_is_stopped_loses_no_kill(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(monkeypatch, tmp_path, 1)
    assert [(each["seed"], each["kills"], each["over"]) for each in kept(tmp_path)] == [(1, 5, True)]
    assert "stopped early" not in (tmp_path / "result.txt").read_text()
    with pytest.raises(KeyboardInterrupt):
        run(monkeypatch, tmp_path, 2, stops_behind=3)
    assert [(each["seed"], each["kills"], each["over"]) for each in kept(tmp_path)] == [(1, 5, True), (2, 3, False)]
    assert "8 kills" in (tmp_path / "result.txt").read_text()
    assert "1 of 2 runs stopped early" in (tmp_path / "result.txt").read_text()
    run(monkeypatch, tmp_path, 3)
    assert [each["kills"] for each in kept(tmp_path)] == [5, 3, 5]
    with pytest.raises(SystemExit, match="seed 2 is counted there already"):
        run(monkeypatch, tmp_path, 2)
    assert not list(tmp_path.glob("*.part"))


def test_wrong_rows_end_the_bench_and_are_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"other rows than a plain loop has: tables sold \(on this machine\)"):
        run(monkeypatch, tmp_path, 1, wrong_rows=1)
    assert kept(tmp_path)[0]["wrong"] == {"tables sold": 2}
