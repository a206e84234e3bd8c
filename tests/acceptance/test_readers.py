"""Readers that a run begins with by itself: each line lands once, those of a file in order, whoever is killed; the run resumed as well."""

from __future__ import annotations

import json
import os
from collections import defaultdict

import pytest
from test_acknowledged import kill_run

pytestmark = pytest.mark.slow
FILES, LINES = 5, 4_000
TOPOLOGY = """
import os
import time

from esault import Bolt, Topology, shuffle
from esault.sinks import JsonLines
from esault.sources import TextFiles


class Strip(Bolt):
    def process(self, key, value):
        if not os.path.exists("go"):
            time.sleep(0.001)
        self.emit(key, value.strip())


def topology(name: str) -> Topology:
    t = Topology(name)
    lines = t.spout("lines", TextFiles("in")).bolt("strip", Strip, grouping=shuffle())
    lines.map(lambda text: int(text)).sink("rows", JsonLines("rows.jsonl", mode="replace"))
    return t
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core has one reader")
def test_each_line_lands_once_and_those_of_a_file_in_order(command, tmp_path):
    (tmp_path / "in").mkdir()
    for file in range(FILES):
        text = "".join(f"{n}{' ' * 700}\n" for n in range(LINES))
        (tmp_path / "in" / f"{file}.txt").write_text(text)
    (tmp_path / "stripped.py").write_text(TOPOLOGY)
    path = tmp_path / "rows.jsonl"
    landed = lambda: path.exists() and path.stat().st_size > 0
    command.start("stripped.py:topology", "--checkpoint", "0.05")
    command.running()
    command.until(landed)
    assert len(command.processes("lines/")) > 1
    command.processes("lines/")[0].kill()
    command.until(lambda: command.status().get("restores", 0) >= 1)
    command.until(lambda: command.status().get("phase") == "running")
    kill_run(command)
    (tmp_path / "go").touch()
    command.start("stripped.py:topology", "--checkpoint", "0.05", "--resume")
    code, _, err = command.wait()
    assert code == 0, err
    rows = defaultdict(list)
    for line in path.read_text().splitlines():
        row = json.loads(line)
        rows[row["key"]].append(row["value"])
    assert rows == {os.path.join("in", f"{file}.txt"): list(range(LINES)) for file in range(FILES)}
