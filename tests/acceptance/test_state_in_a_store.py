"""State in a bucket of S3: a run is killed on one host and goes on at another, which has nothing but the address."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import held
import pytest
import s3_server
import with_state_in_a_store
from click.testing import CliRunner
from test_acknowledged import kill_run

from esault.cli.main import cli

pytestmark = pytest.mark.slow
PLACE = f"{Path(with_state_in_a_store.__file__)}:topology"
STATE = "s3://bucket/states/one"
OPTIONS = ("--checkpoint", "1", "--policy", "none", "--state", STATE)
LINES = 500


@pytest.fixture
def server(monkeypatch):
    found = held.server(s3_server)
    found.forget()
    for name, value in found.environment.items():
        monkeypatch.setenv(name, value)
    found.client.create_bucket(Bucket="bucket")
    return found


@pytest.fixture
def files(tmp_path, server):
    return Files(tmp_path, server)


class Files:
    """A folder that gets files, and what has landed of them."""

    def __init__(self, folder: Path, server: s3_server.Server) -> None:
        self.folder, self.out = folder / "in", folder / "out.jsonl"
        self.folder.mkdir()
        self.count = 0
        #: the prefix below which results are objects; empty: they are in the file `out`
        self.prefix = ""
        self._server = server

    def more(self, files=2) -> None:
        for _ in range(files):
            part = self.folder / f".{self.count}"
            part.write_text("".join(f"f{self.count}-{line}\n" for line in range(LINES)))
            part.rename(self.folder / f"{self.count}.txt")
            self.count += 1

    def landed(self) -> list[tuple[int, str]]:
        if self.prefix:
            # What is staged has not landed, and goes away while one looks.
            objects = [key for key in self._server.keys("bucket", self.prefix) if "/.staged/" not in key]
            bodies = [self._server.body("bucket", key).decode() for key in objects if key.endswith(".jsonl")]
            return [tuple(json.loads(line)["value"]) for body in bodies for line in body.splitlines()]
        if not self.out.exists():
            return []
        lines = self.out.read_text().splitlines(keepends=True)
        if lines and not lines[-1].endswith("\n"):
            lines.pop()  # it is being written
        return [tuple(json.loads(line)["value"]) for line in lines]

    def all_landed(self) -> bool:
        return len(self.landed()) >= self.count * LINES

    def check(self) -> None:
        """Each line is there once, and each file was numbered without a gap: no state was lost."""
        wanted = [(line + 1, f"f{file}-{line}") for file in range(self.count) for line in range(LINES)]
        assert Counter(self.landed()) == Counter(wanted)


def said(*arguments):
    done = CliRunner().invoke(cli, ["checkpoint", *arguments], catch_exceptions=False)
    return done.exit_code, done.output


def test_a_run_goes_on_at_another_host(command, other_command, server, files, tmp_path):
    paths = {"folder": str(files.folder), "out": str(files.out)}
    files.more()
    command.start(PLACE, *OPTIONS, **paths)
    command.running()
    command.until(files.all_landed)
    command.scale("numbered", 3)
    files.more()
    command.processes("numbered/")[0].kill()
    command.until(lambda: command.status().get("restores") == 1 and command.status().get("phase") == "running")
    command.until(files.all_landed)
    answer = command.tell(do="savepoint", name="before")[-1]
    assert answer["path"] == f"{STATE}/savepoints/before"
    files.more()
    kill_run(command)

    assert not list(tmp_path.glob(".esault")), "nothing of the state is on the first host"
    code, text = said("show", STATE)
    assert code == 0 and "numbered: bolt x3" in text and f"in {STATE}; there are" in text
    assert said("list", STATE)[1].startswith("before\tcheckpoint ")
    assert "numbered: bolt" in said("show", f"{STATE}/before")[1]
    assert "of 4 keys in checkpoint" in said("show", f"{STATE}/before", "numbered")[1]

    other_command.name = command.name
    there = other_command.folder = tmp_path / "another-host"
    there.mkdir()
    code, _, err = other_command.run(PLACE, *OPTIONS, **paths)
    assert code != 0 and f"{STATE} holds a run that did not finish" in err
    other_command.start(PLACE, *OPTIONS, "--resume", "--parallelism", "lines=2", **paths)
    other_command.running()
    files.more()
    other_command.until(files.all_landed)
    code, _, err = other_command.stop()
    assert code == 0, err
    files.check()
    keys = server.keys("bucket", "states/one/")
    assert len([key for key in keys if "/checkpoint-" in key and "savepoints" not in key]) <= 3, keys

    # back to the savepoint, in a place of its own: what came since is read once more
    again = tmp_path / "again.jsonl"
    elsewhere = (*OPTIONS[:-1], "s3://bucket/states/two")
    other_command.start(
        PLACE, *elsewhere, "--from-savepoint", f"{STATE}/before", folder=str(files.folder), out=str(again)
    )
    other_command.until(lambda: again.exists() and len(again.read_text().splitlines()) >= (files.count - 4) * LINES)
    code, _, err = other_command.stop()
    assert code == 0, err
    rows = [tuple(json.loads(line)["value"]) for line in again.read_text().splitlines()]
    assert Counter(rows) == Counter((n + 1, f"f{file}-{n}") for file in range(4, files.count) for n in range(LINES))
    assert said("remove", STATE, "before") == (0, "savepoint before is removed\n")
    assert not server.keys("bucket", "states/one/savepoints")


def test_a_run_that_was_taken_for_dead_commits_nothing_any_more(command, other_command, server, files, tmp_path):
    # A file on this host would be the other one's alone, and locked by the run that is taken for dead.
    files.prefix = "out/"
    paths = {"folder": str(files.folder), "out": "s3://bucket/out"}
    files.more()
    command.start(PLACE, *OPTIONS, **paths)
    command.running()
    command.until(files.all_landed)
    held = command.processes()
    other_command.name = command.name
    for process in held:
        process.suspend()
    other_command.start(PLACE, *OPTIONS, "--resume", **paths)
    other_command.running()
    files.more()
    other_command.until(files.all_landed)
    for process in held:
        process.resume()
    files.more()
    code, _, err = command.wait()
    assert code != 0 and f"another run has taken {STATE} over" in err, err
    other_command.until(files.all_landed)
    code, _, err = other_command.stop()
    assert code == 0, err
    files.check()


def test_a_source_that_cannot_seek_is_refused_with_the_remedy(command, server):
    code, _, err = command.run(f"{Path(with_state_in_a_store.__file__)}:from_a_socket", *OPTIONS)
    assert code != 0 and "TcpLines cannot seek" in err and "Name a folder with --state" in err
    assert not server.keys("bucket")
