"""Sources that are acknowledged and sinks that stage: runs that are killed, resumed and scaled lose nothing and double nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
import staged

pytestmark = pytest.mark.slow
PLACE = f"{Path(staged.__file__)}:topology"
COUNT = 1500


@pytest.fixture
def queue():
    made = staged.Queue(COUNT)
    yield made
    made.close()


def give(command, queue, out, more):
    """Let so many more messages out, and wait until rows have been shown and messages acknowledged."""
    before, queue.upto = queue.upto, queue.upto + more
    command.until(lambda: Path(out).exists() and len(staged.rows(out)) > before + more // 2)


def kill_run(command):
    ours = command.processes()
    command.process.kill()
    command.process.communicate()
    for process in ours:
        try:
            process.kill()
        except Exception:  # it has gone with the command
            continue
    command.until(lambda: not command.processes())


def test_killed_resumed_and_scaled_with_checkpoints(command, queue, tmp_path):
    out = str(tmp_path / "rows.sqlite")
    params = {"port": queue.port, "out": out}
    options = ("--checkpoint", "0.2", "--policy", "none")
    # killed before the first checkpoint is complete: what it read is in the spool
    command.start(PLACE, "--checkpoint", "60", "--policy", "none", **params)
    queue.upto = 100
    command.running()
    command.until(lambda: len(queue.given) == 100)
    kill_run(command)
    command.until(lambda: not queue.given)
    command.start(PLACE, *options, "--resume", **params)
    command.running()
    give(command, queue, out, 300)
    for victim in ("queue/", "double/"):
        restores = command.status().get("restores", 0)
        queue.upto += 100  # in flight
        command.processes(victim)[0].kill()
        command.until(lambda restores=restores: command.status().get("restores", 0) > restores)
        give(command, queue, out, 100)
    command.until(lambda: command.status().get("phase") == "running" and command.scaled("double", 4))
    queue.upto += 100
    kill_run(command)
    command.start(PLACE, *options, "--resume", **params)
    command.running()
    queue.upto = COUNT
    code, _, err = command.wait()
    assert code == 0, err
    assert queue.again > 0
    assert staged.rows(out) == list(range(1, COUNT + 1))
    assert staged.rows(out, "staged") == []
    assert not queue.given  # all is acknowledged


def test_what_a_killed_run_staged_is_found_without_a_checkpoint(command, queue, tmp_path):
    out = str(tmp_path / "rows.sqlite")
    with staged.Database(out).connect():
        pass
    params = {"port": queue.port, "out": out}
    command.start(PLACE, "--checkpoint", "60", "--policy", "none", **params)
    command.running()
    (lineage,) = [path.read_text() for path in tmp_path.glob(".esault/*/lineage")]
    kill_run(command)
    with staged.Database(out).connect() as database:
        for whose in (lineage, "another"):
            database.execute("insert into staged values (?, 'left', 0, 0)", (whose,))
    queue.upto = COUNT
    code, _, err = command.run(PLACE, "--checkpoint", "60", "--policy", "none", "--restart", **params)
    assert code == 0, err
    with staged.Database(out).connect() as database:
        assert database.execute("select lineage from staged").fetchall() == [("another",)]
    assert staged.rows(out) == list(range(1, COUNT + 1))
    assert not queue.given


def test_killed_without_checkpoints_nothing_is_lost(command, queue, tmp_path):
    out = str(tmp_path / "rows.sqlite")
    command.start(PLACE, "--policy", "none", port=queue.port, out=out)
    command.running()
    give(command, queue, out, 400)
    for victim in ("double/", "queue/"):
        known = {process.pid for process in command.processes(victim)}
        queue.upto += 100
        command.processes(victim)[0].kill()
        command.until(lambda known=known, victim=victim: {p.pid for p in command.processes(victim)} - known)
        give(command, queue, out, 100)
    command.until(lambda: not queue.given)  # acknowledged while the run goes on
    queue.upto = COUNT
    code, _, err = command.wait()
    assert code == 0, err
    assert sorted(set(staged.rows(out))) == list(range(1, COUNT + 1))
    assert not queue.given
