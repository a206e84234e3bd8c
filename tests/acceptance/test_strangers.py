"""Connectors that a stranger wrote for systems with transactions and acknowledgements: kill -9 of a whole run, and `--resume`."""

from __future__ import annotations

import importlib.util
import sqlite3
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
PLACE = Path(__file__).with_name("strangers.py")
_spec = importlib.util.spec_from_file_location("strangers", PLACE)
strangers = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(strangers)


def made(path):
    """Return the path of a database that is there: the first switch to WAL is refused at once where another connects meanwhile."""
    strangers.connected(path).close()
    return path


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
    out = made(tmp_path / "out.db")
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


def test_a_queue_is_acknowledged_behind_checkpoints_and_gives_nothing_twice(command, tmp_path):
    out, queue = made(tmp_path / "out.db"), tmp_path / "queue.db"
    strangers.filled(queue, 3000)
    options = ("--checkpoint", "0.2")
    command.start(f"{PLACE}:tagged", *options, folder=tmp_path)
    for resumed in range(2):
        had = len(ask(queue, "SELECT 1 FROM queue WHERE acked"))
        command.until(
            lambda had=had, more=not resumed: len(ask(queue, "SELECT 1 FROM queue WHERE acked")) >= had + more
        )
        (acked,) = ask(queue, "SELECT count(*) FROM queue WHERE acked")[0]
        (shown,) = ask(out, "SELECT count(*) FROM rows")[0]
        assert acked <= shown
        killed(command)
        command.start(f"{PLACE}:tagged", *options, "--resume", folder=tmp_path)
    (tmp_path / "gate").touch()
    code, _, err = command.wait()
    assert code == 0, err
    values = [v for (v,) in ask(out, "SELECT value FROM rows JOIN txns USING (token) WHERE state = 'committed'")]
    assert sorted(values) == list(range(3000))
    assert ask(queue, "SELECT count(*) FROM queue WHERE NOT acked") == [(0,)]
    assert ask(out, "SELECT count(*) FROM txns WHERE state = 'open'") == [(0,)]
