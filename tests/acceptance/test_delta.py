"""Into a Delta table by processes that are killed behind each step of a commit: each row counts once."""

from __future__ import annotations

import signal
from pathlib import Path

import delta_log
import depth
import pytest
import to_delta
from test_acknowledged import kill_run

pytest.importorskip("deltalake", reason="deltalake is not installed: pip install 'esault[delta]'")
pytestmark = pytest.mark.slow
PLACE = f"{Path(to_delta.__file__)}:topology"
OPTIONS = ("--checkpoint", "0.2", "--policy", "none")
EACH = 150
#: steps behind which the driver dies
DRIVERS = ("before", "placed-driver", "entered-driver", "commit")


class Given:
    """Lets rows out, and starts runs that go on."""

    def __init__(self, command, out, merged):
        self.command, self.out, self.params = command, out, {"out": out, "merged": merged}
        self.upto = 0
        self.more()

    def more(self):
        self.upto += EACH
        Path(f"{self.out}.gate").write_text(str(self.upto))

    def start(self, *options):
        self.command.start(PLACE, *OPTIONS, *options, **self.params)
        self.command.running()

    def values(self):
        return sorted(value for (value,) in delta_log.rows(self.out, "value")) if Path(self.out).exists() else []

    def all_shown(self):
        self.command.until(lambda: len(self.values()) >= self.upto)
        assert self.values() == list(range(self.upto))

    def die(self, step):
        mark = Path(f"{self.out}.die-{step}")
        mark.touch()
        self.more()
        self.command.until(lambda: not mark.exists())


@pytest.mark.parametrize("merged", [False, True] if depth.PROFILE == "deep" else [False])
def test_killed_behind_each_step_of_a_commit(command, tmp_path, merged):
    given = Given(command, str(tmp_path / "table"), merged)
    given.start()
    given.all_shown()
    kills = 0
    for step in (
        ("entered",) if merged else ("placed", "entered")
    ):  # of the process that commits: the run does not notice
        given.die(step)
        given.all_shown()
        kills += 1
    restores = command.status().get("restores", 0)
    given.die("prepare")  # of a sub-unit: all go back
    command.until(lambda: command.status().get("restores", 0) > restores)
    given.all_shown()
    for step in ("entered-driver",) if merged else depth.chosen(DRIVERS, ("placed-driver", "entered-driver")):
        given.die(step)  # of the driver: the run ends, and another goes on
        code, _, err = command.wait()
        assert code, err
        assert "the driver's process died" in err
        command.until(lambda: not command.processes())
        given.start("--resume")
        given.all_shown()
        kills += 1
    for width in () if merged else (3, 1):  # split and merged
        command.until(lambda width=width: command.status().get("phase") == "running" and command.scaled("same", width))
        given.more()
        given.all_shown()
    given.more()
    kill_run(command)
    given.start("--resume")
    given.more()
    given.all_shown()
    command.process.send_signal(signal.SIGINT)
    code, _, err = command.wait()
    assert code == 0, err
    given.params["n"] = given.upto
    code, _, err = command.run(PLACE, *OPTIONS, "--resume", **given.params)
    assert code == 0, err
    assert given.values() == list(range(given.upto))
    assert kills == (2 if merged else 2 + len(depth.chosen(DRIVERS, ("placed-driver", "entered-driver"))))
    committed = [pair for version in delta_log.versions(given.out) for pair in version]
    assert len(committed) == len(set(committed)), "one version for each checkpoint"
    command.until(lambda: not to_delta.committing(given.out))
    assert not list(Path(given.out, "_esault_staged").rglob("*.parquet")), "nothing is left of aborted checkpoints"


def test_without_checkpoints_it_is_refused(command, tmp_path):
    code, _, err = command.run(PLACE, out=str(tmp_path / "table"))
    assert code == 2
    assert "Dying commits once for each checkpoint, by commit_all: say how often with --checkpoint" in err
