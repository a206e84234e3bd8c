"""Every topology of `topologies/` on a real Spark: its final tables are those of the actor engine's cores."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import depth
import pytest

from esault import EndOfStream
from esault.runtime.session.request import Request
from esault.runtime.session.run import execute
from esault.sources import Paced, TextFiles
from esault.testing import LocalRuntime
from esault.topology.locate import locate
from tests.unit.spark.engine.tables import final, landed, wanted

FOLDER = Path(__file__).parents[3] / "topologies"
#: file, or file:function
TOPOLOGIES = [
    str(file.relative_to(FOLDER).with_suffix("")) + (f":{function}" if function != "topology" else "")
    for file in sorted(FOLDER.rglob("*.py"))
    if file.parent.name != "orders"  # its sources are read in splits, by servers
    for function in re.findall(r"^def (\w+)\([^)]*\) -> Topology:", file.read_text(), re.M)
]
EVENTS = {"events": 3000}
AUTOSCALE = {"speed": 500.0, "seconds": 320}
#: what makes each small: parameters, and tasks of its units
SMALL: dict[str, tuple[dict[str, Any], dict[str, int]]] = {
    "word_count": ({"path": "texts"}, {}),
    "standard_library": ({}, {}),
    "rush_hour": ({"calm": 5.0, "rush": 80.0, "seconds": 1.0}, {}),
    "traffic": ({"folder": "traces"}, {}),
    "flight_delays": ({"most": 4000}, {}),
    "tpch_q3": ({}, {"match": 1}),
    "papers/autoscale:linear": (AUTOSCALE, {}),
    "papers/autoscale:diamond": (AUTOSCALE, {"final": 1}),
    "papers/autoscale:star": (AUTOSCALE, {"final-3": 1}),
    "papers/migration": ({"workers": 3, "seconds": 1, "scale": 10.0, "varied": False, "replicas": 1}, {}),
    "nexmark/q1": (EVENTS, {"events": 2}),
    "nexmark/q2": (EVENTS, {}),
    "nexmark/q3": (EVENTS, {"events": 2}),
    "nexmark/q5": (EVENTS, {"events": 2}),
    "nexmark/q7": (EVENTS, {}),
    "nexmark/q8": (EVENTS, {"events": 2}),
    "nexmark/q11": (EVENTS, {}),
}
#: what every run of the tests takes: sliding windows; a join is in tests/unit/spark/engine/test_topologies.py, without a JVM
FEW = ("nexmark/q5",)
#: what drops tuples where load is too much: nothing is dropped on Spark
#: one drops on the actors, and the other is tried with its tables: tests/spark/test_flight_pipeline.py
ELSEWHERE = {"papers/craa", "flight_pipeline"}


def place(name: str) -> str:
    file, *function = name.split(":")
    return ":".join([f"{FOLDER / file}.py", *function])


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what topologies read, in which they run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("the cat sat on the mat\nthe end\n" * 1000)
    locate(str(FOLDER / "geolife.py")).load_module().write(tmp_path / "traces", devices=5, fixes=400, bad=0.02)
    return tmp_path


def test_each_topology_says_what_makes_it_small_or_why_it_is_left_out() -> None:
    there = {name for name in TOPOLOGIES if not name.startswith("connectors/")}
    assert there == SMALL.keys() | ELSEWHERE
    assert set(FEW) < SMALL.keys()


@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", depth.chosen(SMALL, FEW))
def test_final_tables_are_those_of_the_actor_engines_cores(
    spark: Any, data: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    params, tasks = SMALL[name]
    if name == "tpch_q3":
        tables = "--tables=customer,orders,lineitem"
        command = [Path(sys.executable).with_name("tpchgen-cli"), "tbl", "-s", "0.001", tables, "--output-dir=tpch"]
        subprocess.run(command, check=True, capture_output=True)
    # Two batches; what comes when is of no matter to the tables.
    monkeypatch.setattr("esault.spark.engine.batch_size.FIRST", 1500)
    monkeypatch.setattr(Paced, "read", lambda self, limit: self.spout.read(limit))
    if name == "standard_library":  # all of it would take minutes
        for read in ("read", "read_columns"):  # as Spark asks it, and as actors do
            monkeypatch.setattr(TextFiles, read, beginning(getattr(TextFiles, read)))
    topology = locate(place(name))
    report = execute(Request(topology, params, "spark", parallelism=tasks))
    assert report.ended == "drained"
    want = wanted(LocalRuntime(topology.build(params)))
    assert all(rows for sink, rows in want.items() if sink != "late")
    assert final(name, landed(topology.build(params).plan())) == final(name, want)


def beginning(read: Any, most: int = 2500) -> Any:
    """`read` of a spout that ends after so many tuples."""
    given: Counter[Any] = Counter()

    def few(self: Any, limit: int) -> Any:
        if given[self] == most:
            raise EndOfStream
        rows = read(self, min(limit, most - given[self]))
        given[self] += len(rows)
        return rows

    return few
