"""Sinks that commit for the whole run, and async ones, killed behind each step: nothing is missing, nothing comes twice."""

from __future__ import annotations

import signal
from pathlib import Path

import depth
import one_commit
import pytest
from test_acknowledged import kill_run

pytestmark = pytest.mark.slow
PLACE = f"{Path(one_commit.__file__)}:topology"
OPTIONS = ("--checkpoint", "0.2", "--policy", "none")
EACH = 150


class Given:
    """Lets rows out, and starts runs that go on."""

    def __init__(self, command, out, kind):
        self.command, self.out, self.params = command, out, {"out": out, "kind": kind}
        self.upto = 0
        self.more()

    def more(self):
        self.upto += EACH
        Path(f"{self.out}.gate").write_text(str(self.upto))

    def start(self, *options):
        self.command.start(PLACE, *OPTIONS, *options, **self.params)
        self.command.running()

    def all_shown(self):
        self.command.until(lambda: len(one_commit.rows(self.out)) == self.upto)

    def die(self, step):
        """Have the process that comes to this step die there; the rows of it are on their way."""
        mark = Path(f"{self.out}.die-{step}")
        mark.touch()
        self.more()
        self.command.until(lambda: not mark.exists())


@pytest.mark.parametrize("kind", depth.chosen(["Versions", "Service"], ["Service"]))
def test_killed_behind_each_step(command, tmp_path, kind):
    out = str(tmp_path / "rows.sqlite")
    given = Given(command, out, kind)
    given.start()
    given.all_shown()
    restores = command.status().get("restores", 0)
    given.die("prepare")  # of a sub-unit: all go back
    command.until(lambda: command.status().get("restores", 0) > restores)
    given.all_shown()
    for step in depth.chosen(
        ("before", "within", "commit"), ("within", "commit")
    ):  # of the driver: the run ends, and another goes on
        given.die(step)
        code, _, err = command.wait()
        assert code, err
        assert "the driver's process died" in err
        command.until(lambda: not command.processes())
        given.start("--resume")
        given.all_shown()
    command.until(lambda: command.status().get("phase") == "running" and command.scaled("same", 3))
    given.more()
    given.all_shown()
    given.more()
    kill_run(command)
    given.start("--resume")
    given.more()
    command.process.send_signal(signal.SIGINT)
    code, _, err = command.wait()
    assert code == 0, err
    given.params["n"] = given.upto
    code, _, err = command.run(PLACE, *OPTIONS, "--resume", **given.params)
    assert code == 0, err
    assert one_commit.rows(out) == list(range(given.upto))
    with one_commit.connected(out) as database:
        assert database.execute("select count(*) from staged").fetchone() == (0,)
        versions = database.execute("select version, handles from versions").fetchall()
    assert len(versions) == len({version for version, _ in versions}), "one version for each checkpoint"
    assert {2, 3} <= {handles for _, handles in versions}, "with what all sub-units prepared"


def test_without_checkpoints_a_sink_that_has_no_commit_is_refused(command, tmp_path):
    code, _, err = command.run(PLACE, out=str(tmp_path / "rows.sqlite"))
    assert code == 2
    assert (
        "sink 'out': Versions commits once for each checkpoint, by commit_all: say how often with --checkpoint" in err
    )


@pytest.mark.parametrize("kind", ["Versions", "Service"])
def test_in_one_process_as_well(command, tmp_path, kind):
    out = str(tmp_path / "rows.sqlite")
    Path(f"{out}.gate").write_text("600")
    code, _, err = command.run(PLACE, "--engine", "local", "--checkpoint", "0.1", out=out, kind=kind, n=600)
    assert code == 0, err
    assert one_commit.rows(out) == list(range(600))


def test_on_several_hosts_the_driver_commits_what_all_of_them_prepared(command, nodes, tmp_path):
    out = str(tmp_path / "rows.sqlite")
    nodes.start("a", "b")
    given = Given(command, out, "Service")
    given.start(*nodes.options)
    given.all_shown()
    restores = command.status().get("restores", 0)
    given.die("prepare")
    command.until(lambda: command.status().get("restores", 0) > restores)
    given.all_shown()
    given.die("within")
    code, _, err = command.wait()
    assert code, err
    given.params["n"] = given.upto
    code, _, err = command.run(PLACE, *OPTIONS, *nodes.options, "--resume", **given.params)
    assert code == 0, err
    assert one_commit.rows(out) == list(range(given.upto))
    with one_commit.connected(out) as database:
        assert set(database.execute("select handles from versions").fetchall()) == {(2,)}
