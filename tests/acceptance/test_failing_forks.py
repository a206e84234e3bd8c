"""Runs on a machine that allows no further process for a while: what is missing is said, and nothing stands still for ever."""

from __future__ import annotations

import json
import signal
from collections import Counter

import pytest
from test_checkpointed_runs import checkpoint_of

from esault.errors import UsageError

pytestmark = pytest.mark.slow
ROWS, KEYS = 3000, 7
#: the file `no-forks` is the limit: forks fail while it is there
FAILING = """
import errno
import os
from multiprocessing import popen_fork

from esault import Bolt, Topology, by_key
from esault.runtime.worker import fork_retries
from esault.sinks import JsonLines
from esault.sources import Items, Paced

fork_retries.GIVE_UP_AFTER = float(os.environ.get("GIVE_UP_AFTER", "30"))
launch = popen_fork.Popen._launch


def failing(self, process):
    if os.path.exists("no-forks"):
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
    return launch(self, process)


popen_fork.Popen._launch = failing


class Count(Bolt):
    total = 0

    def process(self, key, value):
        self.total += value
        self.emit(key, self.total)


def topology(name="failing", p=1):
    t = Topology(name)
    spout = t.spout("numbers", Paced(Items([(f"k{i % 7}", 1) for i in range(3000)]), rate=500))
    spout.bolt("count", Count, grouping=by_key(), parallelism=p).sink("out", JsonLines("out.jsonl"))
    return t
"""
SAID = "cannot be started: Resource temporarily unavailable; no more processes or threads are allowed: raise the limit"


@pytest.fixture
def place(tmp_path):
    (tmp_path / "failing.py").write_text(FAILING)
    return f"{tmp_path}/failing.py:topology"


def check(folder):
    found = [(row["key"], row["value"]) for row in map(json.loads, (folder / "out.jsonl").read_text().splitlines())]
    assert len(found) == len(set(found)) == ROWS
    assert Counter(key for key, _ in found) == Counter(f"k{i % KEYS}" for i in range(ROWS))


def test_a_change_is_given_up_with_its_reason_and_who_died_comes_back_when_forks_work_again(command, tmp_path, place):
    command.start(place, "--checkpoint", "0.3", "--policy", "none")
    command.running()
    (tmp_path / "no-forks").touch()
    with pytest.raises(UsageError, match="could not be started: Resource temporarily unavailable"):
        command.scale("count", 3)
    command.until(lambda: checkpoint_of(command) >= 2)  # it goes on meanwhile
    command.processes("count/")[0].kill()
    command.until(lambda: command.status().get("restores") == 1)
    command.until(lambda: command.status()["unforked"] > 0)
    (tmp_path / "no-forks").unlink()
    command.until(lambda: command.status()["phase"] == "running")
    command.scale("count", 2)
    code, out, err = command.wait()
    assert code == 0, err
    assert SAID in err
    assert "it stays at 1 sub-unit " in out
    check(tmp_path)


def test_a_run_whose_only_sub_unit_cannot_be_brought_back_ends_and_another_goes_on(
    command, tmp_path, place, monkeypatch
):
    monkeypatch.setenv("GIVE_UP_AFTER", "1")
    command.start(place, "--checkpoint", "0.3", "--policy", "none")
    command.running()
    command.until(lambda: checkpoint_of(command) >= 1)
    (tmp_path / "no-forks").touch()
    command.processes("count/")[0].kill()
    code, _, err = command.wait()
    assert code == 1
    assert "could not be started in" in err
    assert SAID in err
    assert command.processes() == []
    (tmp_path / "no-forks").unlink()
    code, _, err = command.run(place, "--checkpoint", "0.3", "--resume", "--policy", "none")
    assert code == 0, err
    check(tmp_path)


def test_the_first_ctrl_c_pauses_a_run_that_waits_for_a_fork(command, tmp_path, place):
    command.start(place, "--checkpoint", "0.3", "--policy", "none")
    command.running()
    command.until(lambda: checkpoint_of(command) >= 1)
    (tmp_path / "no-forks").touch()
    command.processes("count/")[0].kill()
    command.until(lambda: command.status()["unforked"] > 0)
    command.process.send_signal(signal.SIGINT)
    code, out, err = command.wait()
    assert code == 0, err
    assert "paused at checkpoint" in out
    assert command.processes() == []
    (tmp_path / "no-forks").unlink()
    code, _, err = command.run(place, "--checkpoint", "0.3", "--resume", "--policy", "none")
    assert code == 0, err
    check(tmp_path)
