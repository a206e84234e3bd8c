"""A run on Spark whose Java is killed: it says so, and goes on where it was."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'esault[spark]'")

TOPOLOGY = """
import os
import signal
from pathlib import Path

import psutil

from esault import Bolt, Topology, by_key
from esault.sinks import JsonLines
from esault.sources import Items, Paced

N = 3000

class Count(Bolt):
    def __init__(self):
        self.total = 0

    def process(self, key, value):
        self.total += 1
        self.emit(key, self.total)
        if value == N // 2 and not os.path.exists("killed"):
            Path("killed").touch()
            java = next(p for p in psutil.Process().parents() if p.name() == "java")
            os.kill(java.pid, signal.SIGKILL)

def topology():
    t = Topology("dies")
    numbers = t.spout("numbers", Paced(Items([(f"k{n % 7}", n) for n in range(N)]), rate=1500))
    numbers.bolt("count", Count, grouping=by_key()).sink("rows", JsonLines("rows.jsonl"))
    return t
"""


@pytest.mark.timeout(600)
def test_a_run_says_that_its_java_was_killed_and_goes_on_behind_it(young: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "dies.py").write_text(TOPOLOGY)

    def run(*more: str) -> Any:
        command = [sys.executable, "-m", "esault", "run", "dies.py", "--engine", "spark", "--master", "local[2]"]
        command += ["--plain", "--checkpoint", "0.2", "--state", "state", *more]
        return subprocess.run(
            command, cwd=tmp_path, env=young, capture_output=True, text=True, timeout=250, check=False
        )

    died = run()
    assert died.returncode == 1, died.stderr
    assert "failed: Spark's Java (process " in died.stderr
    assert "was killed (SIGKILL)" in died.stderr
    assert "Nothing is lost: go on with --resume" in died.stderr
    assert "Traceback" not in died.stderr
    again = run("--resume")
    assert again.returncode == 0, again.stderr
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    totals: dict[str, list[int]] = {}
    for row in rows:
        totals.setdefault(row["key"], []).append(row["value"])
    assert {key: sorted(values) for key, values in totals.items()} == {
        f"k{k}": list(range(1, len(range(k, 3000, 7)) + 1)) for k in range(7)
    }
