"""Hosts that get another eSault while a run lasts, one after the other: refused with the remedy before anything starts there, and the run
goes on without them."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import flows
import pytest
from nodes import ROOT, NodeProcess
from test_checkpointed_runs import check, wanted, write_text
from test_hosts_come_and_go import checkpoint_of, hosts, start
from waiting import until

from esault.cluster.versions import _digest, installed
from esault.errors import UsageError
from esault.runtime.session.resolve_hosts import reach

pytestmark = pytest.mark.slow
#: as `start` has it
GATED = {"path": "in.txt", "out": "out.jsonl", "gate": "gate", "rate": 400.0, "p": 2}


def another(folder: Path) -> tuple[str, ...]:
    """An eSault of the same number with other code, and how its command is called."""
    shutil.copytree(Path(ROOT, "esault"), folder / "esault")
    with (folder / "esault" / "cluster" / "messages.py").open("a") as file:
        file.write("# a later commit\n")
    there = f"import os, sys; os.environ['PYTHONPATH'] = {str(folder)!r}; sys.path.insert(0, {str(folder)!r})"
    return ("-c", f"{there}; from esault.cli.main import main; main()")


def test_a_host_on_another_version_is_refused_with_the_remedy_and_the_run_goes_on(
    command, nodes, tmp_path, monkeypatch
):
    other = another(tmp_path / "other")
    theirs = f"0.1.0 (build {_digest(tmp_path / 'other' / 'esault')})"
    assert theirs != installed()
    nodes.start("a", slots=6)
    nodes.start("b")
    write_text(tmp_path, 1200)
    start(command, nodes, "--checkpoint", "0.3")
    until(lambda: checkpoint_of(command) >= 1)
    # host b is upgraded, as the first half of the hosts would be
    address = nodes["b"].address
    nodes["b"].kill(signal.SIGTERM)
    nodes["b"].process.wait()
    nodes["b"].process.stdout.close()
    nodes.nodes["b"] = NodeProcess(
        tmp_path, "b2", "--key", nodes.key, "--slots", "6", listen=address, program=other
    ).ready()
    until(lambda: "refused 127.0.0.1" in nodes["b"].said())
    # one that would join the old ones is told at once
    late = NodeProcess(tmp_path, "c", "--key", nodes.key, "--join", nodes["a"].address, program=other)
    assert late.process.wait(200) == 2
    late.process.stdout.close()
    assert f"host a has eSault {installed()}" in late.said()
    assert f"and you have eSault {theirs}" in late.said()
    assert "install the same on both" in late.said()
    assert set(hosts(command)) == {"a"}
    # and a new run on both begins nowhere
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=re.escape(f"host b2 has eSault {theirs}")):
        reach(flows.counted("x", "in.txt", "x.jsonl").plan(), "hosts.toml", nodes.key, None, None)
    # the run is stopped, and goes on with the new version on the hosts that have it
    code, _, err = command.stop()
    assert code == 0, err
    assert f"host b2 has eSault {theirs}" in err
    assert "it takes no part so far" in err
    (tmp_path / "gate").touch()
    nodes.name_all("b")
    sets = [f"--set={name}={value}" for name, value in {**GATED, "name": command.name}.items()]
    done = subprocess.run(
        [sys.executable, *other, "run", f"{flows.__file__}:gated", *nodes.options, "--checkpoint", "0.3", "--resume", "--plain", *sets],
        cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "host b2" in done.stderr
    check(tmp_path / "out.jsonl", wanted(tmp_path))
