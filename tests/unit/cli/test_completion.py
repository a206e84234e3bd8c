"""What the shell is told when it asks for completions, by click's own protocol."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.shell_completion import ShellComplete

from esault.cli.completion import VARIABLE
from esault.cli.main import cli
from esault.runtime.session.detached import DetachedRun

ROOT = str(Path(__file__).parents[3])


def run(name, number, *units):
    status = {"units": [{"name": unit, "kind": "bolt", "sub_units": 3} for unit in units]}
    return SimpleNamespace(name=name, run=f"2026-{number}", status=status)


@pytest.fixture(autouse=True)
def runs(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    found = [run("words", 1, "split", "count"), run("shop", 2, "count", "price")]
    monkeypatch.setattr("esault.runtime.session.control_client.running", lambda: found)
    folder = tmp_path / "esault" / "runs" / "1"
    folder.mkdir(parents=True)
    DetachedRun(folder).say(topology="batch", ended="drained", pid=1, born=-1.0)


def completed(*arguments):
    *before, text = arguments
    return [item.value for item in ShellComplete(cli, {}, "esault", VARIABLE).get_completions(list(before), text)]


@pytest.mark.parametrize(
    "line, found",
    [
        (("sc",), ["scale"]),
        (("run", "--heart"), ["--heartbeat-timeout"]),
        (("run", "--engine", ""), ["actors", "local", "spark"]),
        (("scale", ""), ["split", "count", "price"]),
        (("scale", "co"), ["count"]),
        (("scale", "--run", "shop", ""), ["count", "price"]),
        (("throttle", "--run", "2026-1", ""), ["split", "count"]),
        (("state", "pr"), ["price"]),
        (("state", "s"), ["split", "shop"]),
        (("state", "shop", ""), ["count", "price"]),
        (("state", "--run", "shop", ""), ["count", "price"]),
        (("state", "--run", "shop", "count", ""), []),
        (("stop", "--run", ""), ["words", "shop"]),
        (("status", "--run", "w"), ["words"]),
        (("logs", ""), ["batch"]),
        (("policies", "thr"), ["threshold"]),
        (("run", "a.py", "--policy", "thr"), ["threshold"]),
        (("run", "a.py", "--policy", "count=thr"), ["count=threshold"]),
        (("completion", "b"), ["bash"]),
    ],
)
def test_what_there_is_is_completed(line, found):
    assert completed(*line) == found


def test_files_are_the_shells_own():
    for command in ("run", "check"):
        (item,) = ShellComplete(cli, {}, "esault", VARIABLE).get_completions([command], "top")
        assert (item.type, item.value) == ("file", "top")


def test_a_shell_that_asks_by_its_variable_is_answered_by_the_command():
    env = {**os.environ, "PYTHONPATH": ROOT, VARIABLE: "bash_complete", "COMP_WORDS": "esault thr", "COMP_CWORD": "1"}
    done = subprocess.run([sys.executable, "-m", "esault"], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "plain,throttle\n"), done.stderr


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_what_the_shell_reads_asks_by_that_variable(shell):
    done = subprocess.run(
        [sys.executable, "-m", "esault", "completion", shell],
        env={**os.environ, "PYTHONPATH": ROOT},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert f"{VARIABLE}={shell}_complete" in done.stdout
