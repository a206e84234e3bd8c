"""Runs that go on without their terminal."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import esault_command
import psutil
import pytest

pytestmark = pytest.mark.slow
ROOT = str(Path(__file__).parents[2])

SHOP = """
import logging

from esault import Bolt, Topology, by_key
from esault.sources import Items, Paced


class Count(Bolt):
    def process(self, key, value):
        print("order", value)
        if value == 3:
            logging.getLogger(__name__).warning("a third")


def topology(name: str = "shop", rows: int = 100_000) -> Topology:
    t = Topology(name)
    t.spout("orders", Paced(Items([(i % 4, i) for i in range(rows)]), 100)).bolt("count", Count, by_key())
    return t
"""


@pytest.fixture
def esault(tmp_path):
    (tmp_path / "shop.py").write_text(SHOP)
    env = {**os.environ, "PYTHONPATH": ROOT, "XDG_STATE_HOME": str(tmp_path / "home")}

    def call(*arguments):
        return esault_command.run(*arguments, cwd=tmp_path, env=env)

    yield call
    for each in (json.loads(line) for line in call("list", "--json")[1].splitlines()):
        if each["log"] and each["state"] in ("running", "starting", "ending"):
            os.kill(int(each["process"]), signal.SIGKILL)


def state(esault, run):
    return {each["run"]: each for each in map(json.loads, esault("list", "--json")[1].splitlines())}[run]


def test_a_run_goes_on_alone_logs_and_is_stopped(esault, tmp_path):
    name = f"shop{os.getpid()}"
    code, out, err = esault("run", "shop.py", "--detach", "--set", f"name={name}")
    assert code == 0, err
    run = out.splitlines()[0].split()[-1]
    while (found := state(esault, run))["state"] in ("building", "wiring", "beginning"):
        time.sleep(0.1)
    assert (found["topology"], found["state"]) == (name, "running")
    process = psutil.Process(found["process"])
    assert process.terminal() is None and os.getsid(process.pid) == process.pid
    while "a third" not in esault("logs", name)[1]:
        time.sleep(0.1)
    code, out, err = esault("logs", run[:20], "--unit", "count")
    assert code == 0, err
    assert "] WARNING shop: a third" in out and "] order 3" in out
    assert esault("stop", "--run", name)[0] == 0
    out = esault("logs", name, "--follow", "--lines", "3")[1]  # it ends with the run
    assert f"{name}: drained after" in out
    assert state(esault, run)["state"] == "drained"


def test_what_does_not_begin_says_why(esault):
    code, out, err = esault("run", "nothing.py", "--detach")
    assert (code, out) == (2, "")
    assert "there is no file nothing.py" in err
    code, _, err = esault("run", "shop.py", "--detach", "--slots", "1")
    assert code == 2
    assert "shop needs 2 slots to start and there are 1" in err
