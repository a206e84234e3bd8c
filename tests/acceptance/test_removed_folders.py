"""Runs whose own folder or sockets somebody else removes while they live."""

from __future__ import annotations

import shutil

import pytest
from running_commands import run_dirs
from test_checkpointed_runs import check, gated, wanted, write_text

pytestmark = pytest.mark.slow


def remove(folder):
    """Remove it in one step: one by one, the first of its files may be made again before the last is gone."""
    shutil.rmtree(folder.rename(folder.with_name(f"removed-{folder.name}")))


def test_a_run_whose_folder_was_removed_makes_it_again_and_newcomers_find_their_senders(command, tmp_path):
    write_text(tmp_path)
    command.start("gated", "--checkpoint", "0.3", "--policy", "none", p=2, **gated(tmp_path))
    command.running()
    folder = run_dirs(command.process.pid)[0]
    sockets = {path.name for path in folder.iterdir()}
    remove(folder)
    command.until(lambda: folder.exists() and {path.name for path in folder.iterdir()} == sockets)
    command.until(command.status)
    command.scale("count", 3)
    (tmp_path / "gate").touch()
    code, out, err = command.wait()
    assert code == 0, err
    assert f"the run's folder {folder} was removed by another program: made again" in err
    assert "] its sockets were removed by another program: made again" in out
    check(tmp_path / "out.jsonl", wanted(tmp_path))
    assert not folder.exists()


COLLECTING = """
from esault import Topology
from esault.sinks import Collect
from esault.sources import Items, Paced


def topology(name="collecting"):
    t = Topology(name)
    t.spout("numbers", Paced(Items([(i, i) for i in range(10**6)]), rate=100)).sink("all", Collect())
    return t
"""


def test_a_run_whose_collected_rows_were_removed_ends_and_says_so(command, tmp_path):
    (tmp_path / "collecting.py").write_text(COLLECTING)
    command.start(f"{tmp_path}/collecting.py:topology", "--policy", "none")
    command.running()
    folder = run_dirs(command.process.pid)[0]
    remove(folder)
    code, _, err = command.wait()
    assert code == 1
    assert (
        f"the run's folder {folder} was removed by another program, and with it the rows that all (Collect) had" in err
    )
    assert command.processes() == []
