"""Connectors that a stranger wrote for systems with transactions and acknowledgements: kill -9 of a whole run, and `--resume`."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
PLACE = Path(__file__).with_name("strangers.py")


def ask(path, query):
    database = sqlite3.connect(path, timeout=30)
    try:
        return database.execute(query).fetchall()
    except sqlite3.OperationalError:
        return []
    finally:
        database.close()


def killed(command):
    """The whole run, at once."""
    for process in command.processes():
        process.kill()
    command.process.kill()
    command.wait()
    command.until(lambda: not command.processes())


def test_a_sink_finds_and_aborts_the_transactions_of_a_run_that_was_killed(command, tmp_path):
    out = tmp_path / "out.db"
    params = {"folder": tmp_path, "n": 2000}
    # Killed before the first checkpoint: the run that goes on begins from the start, and has only the lineage to go by.
    command.start(f"{PLACE}:transactions", "--checkpoint", "60", **params)
    command.until(lambda: len(ask(out, "SELECT value FROM rows")) > 1000)
    killed(command)
    assert {state for (state,) in ask(out, "SELECT state FROM txns")} == {"open"}
    command.start(f"{PLACE}:transactions", "--checkpoint", "0.2", "--resume", **params)
    command.until(lambda: ask(out, "SELECT 1 FROM txns WHERE state = 'committed'"))
    killed(command)
    (tmp_path / "gate").touch()
    code, _, err = command.run(f"{PLACE}:transactions", "--checkpoint", "0.2", "--resume", **params)
    assert code == 0, err
    states = {state for (state,) in ask(out, "SELECT state FROM txns")}
    assert states == {"committed", "aborted"}
    values = [v for (v,) in ask(out, "SELECT value FROM rows JOIN txns USING (token)")]
    assert sorted(values) == list(range(2000))
    runs = ask(out, "SELECT run, lineage, resumed FROM runs")
    assert [resumed for _, _, resumed in runs] == [0, 0, 1]
    assert len({run for run, _, _ in runs}) == 3
    assert len({lineage for _, lineage, _ in runs}) == 1
