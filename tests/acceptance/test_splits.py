"""A spout that reads splits is scaled live, killed and resumed: each row of each split lands once."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import a_folder
import depth
import pytest
from test_acknowledged import kill_run

pytestmark = pytest.mark.slow
PLACE = f"{Path(a_folder.__file__)}:topology"
OPTIONS = ("--checkpoint", "0.2", "--policy", "none")
LINES = 400


class Folder:
    """Gets files, and knows which rows must come of them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.wanted = folder, []
        (folder / "in").mkdir()

    def more(self, files=6):
        for _ in range(files):
            number = len(self.wanted) // LINES
            rows = [f"f{number}-{line}" for line in range(LINES)]
            part = self.folder / "in" / f".{number}.txt"
            part.write_text("".join(f"{row}\n" for row in rows))
            part.rename(part.with_name(f"{number}.txt"))
            self.wanted += rows

    def rows(self) -> list[str]:
        path = self.folder / "out.jsonl"
        return [json.loads(line)["value"] for line in path.read_text().splitlines()] if path.exists() else []

    def all_landed(self):
        return len(self.rows()) >= len(self.wanted)

    def check(self):
        """Each once; the bolt has marked those that came out of order."""
        assert Counter(self.rows()) == Counter(self.wanted)


def through_it_all(command, folder: Folder, kill, *options: str) -> None:
    folder.more()
    command.start(PLACE, *OPTIONS, *options)
    command.running()
    command.until(lambda: command.scaled("lines", 3))
    folder.more()
    command.until(folder.all_landed)
    folder.more()
    kill()
    command.until(lambda: command.status().get("restores", 0) and command.status().get("phase") == "running")
    folder.more()
    command.until(lambda: command.scaled("lines", 1))
    command.until(folder.all_landed)
    folder.more()
    kill_run(command)
    folder.more()
    command.start(PLACE, *OPTIONS, *options, "--resume", "--parallelism", "lines=2")
    command.running()
    command.until(folder.all_landed)
    code, _, err = command.stop()
    assert code == 0, err
    folder.check()


def test_splits_on_processes(command, tmp_path):
    through_it_all(command, Folder(tmp_path), lambda: command.processes("lines/")[0].kill())


@depth.deep("on processes above, and a host is lost in test_hosts_come_and_go.py")
def test_splits_on_two_hosts(command, nodes, tmp_path):
    nodes.start("a", "b")
    through_it_all(command, Folder(tmp_path), lambda: nodes["b"].tree()[-1].kill(), *nodes.options)
