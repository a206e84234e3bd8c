"""A cluster of several processes: files go along, modules beside the topology's too."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import depth
import pytest

BOLTS = """
from beside.numbers import ONE
from esault import Bolt


class Split(Bolt):
    def process(self, key, value):
        for word in value.split():
            self.emit(word, ONE)


class Count(Bolt):
    def __init__(self):
        self.total = 0

    def process(self, key, value):
        self.total += value

    def finish(self):
        self.emit(self.key, self.total)
"""
TOPOLOGY = """
import bolts
from esault import Topology, by_key, shuffle
from esault.sinks import JsonLines
from esault.sources import TextFiles


def topology(path: str = "texts/*.txt") -> Topology:
    t = Topology("clustered")
    words = t.spout("lines", TextFiles(path)).bolt("split", bolts.Split, grouping=shuffle())
    words.bolt("count", bolts.Count, grouping=by_key()).sink("counts", JsonLines("counts.jsonl"))
    return t
"""


@pytest.mark.skipif(
    depth.PROFILE != "deep", reason="three JVMs for a minute; what goes along: tests/unit/spark/engine/test_shipping.py"
)
@pytest.mark.timeout(300)
def test_a_cluster_gets_the_topology_and_what_lies_beside_it(young: dict[str, str], tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'esault[spark]'")
    here = tmp_path / "my-work"
    (here / "beside").mkdir(parents=True)
    (here / "texts").mkdir()
    (here / "beside" / "__init__.py").write_text("")
    (here / "beside" / "numbers.py").write_text("ONE = 1\n")
    (here / "bolts.py").write_text(BOLTS)
    (here / "my-topology.py").write_text(TOPOLOGY)
    (here / "texts" / "a.txt").write_text("the cat sat on the mat\n" * 50)
    command = "esault run my-topology.py --engine spark --master local-cluster[2,1,1024] --report r.json --plain"
    done = subprocess.run(
        [sys.executable, "-m", *command.split()],
        cwd=here,
        env=young,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "clustered: drained" in done.stdout
    rows = [json.loads(line) for line in (here / "counts.jsonl").read_text().splitlines()]
    assert {row["key"]: row["value"] for row in rows} == {"the": 100, "cat": 50, "sat": 50, "on": 50, "mat": 50}
    report = json.loads((here / "r.json").read_text())
    assert report["engine"] == "spark" and report["units"]["count"]["parallelism"] == [[0.0, 2]]
