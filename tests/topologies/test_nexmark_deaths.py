"""kill -9 in the middle of a windowed query with checkpoints: rows are those of a database all the same, each once."""

from __future__ import annotations

import json
import subprocess

import depth
import esault_command
import psutil
import pytest
from running import FOLDER
from waiting import until

from bench.nexmark.answers import answer, load, rows

pytestmark = pytest.mark.slow
COUNT, SLOW = 20_000, 100.0


def landed(file):
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def child(process, unit):
    """The process of a unit of this run and no other."""
    for each in process.children(recursive=True):
        try:
            if f" {unit}/" in " ".join(each.cmdline()):
                return each
        except psutil.Error:
            continue
    return None


@pytest.mark.parametrize("unit", depth.chosen(["count", "events"], ["count"]))
def test_open_windows_survive_the_death_of_a_process(sql, tmp_path, unit):
    load(sql, COUNT, per_second=SLOW)
    out = tmp_path / "q5.jsonl"
    params = {"events": COUNT, "per_second": SLOW, "rate": 6000.0, "out": out}
    sets = [f"--set={name}={value}" for name, value in params.items()]
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    asked = ("run", f"{FOLDER}/nexmark/q5.py", "--plain", "--checkpoint", "0.3", *sets)
    with esault_command.start(*asked, cwd=tmp_path, **pipes) as run:
        try:
            until(lambda: len(landed(out)) > 10)
            child(psutil.Process(run.pid), unit).kill()
            _, err = run.communicate(timeout=200)
        finally:
            if run.poll() is None:
                run.kill()
    assert run.returncode == 0, err
    assert "died" in err
    assert rows((row["key"], row["value"]) for row in landed(out)) == answer(sql, "q5")
