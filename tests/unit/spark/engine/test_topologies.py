"""The topologies of this project through the stages of the Spark engine: their tables are those of the actor engine's cores."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from esault.testing import LocalRuntime
from esault.topology.locate import locate

from .chain import Chain
from .tables import final, landed, wanted

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'esault[spark]'")

FOLDER = Path(__file__).parents[4] / "topologies"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "params", "chosen"),
    [
        ("word_count", {"path": "texts"}, {}),
        ("traffic", {"folder": "traces"}, {}),
        ("flight_delays", {"most": 5000}, {}),
        ("nexmark/q1", {"events": 5000, "malformed": 0.01}, {"events": 2}),
        ("nexmark/q2", {"events": 5000}, {}),
        ("nexmark/q3", {"events": 5000}, {"events": 2, "sellers": 3}),
        ("nexmark/q5", {"events": 5000}, {"events": 2}),
        ("nexmark/q7", {"events": 5000}, {}),
        ("nexmark/q8", {"events": 5000}, {"events": 3}),
        ("nexmark/q11", {"events": 5000}, {}),
    ],
)
def test_a_topology_lands_what_it_lands_on_actors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, params: dict[str, Any], chosen: dict[str, int]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("esault.spark.engine.reading.READ_ROWS", 400)  # several batches
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("the cat sat on the mat\nthe end\n" * 200)
    locate(str(FOLDER / "geolife.py")).load_module().write(tmp_path / "traces", devices=5, fixes=100, bad=0.02)
    place = f"{FOLDER / name}.py"
    chain = Chain(place, tmp_path / "run", params, **chosen)
    chain.drain()
    assert final(name, landed(chain.plan)) == final(name, wanted(LocalRuntime(locate(place).build(params))))


@pytest.mark.slow
def test_three_levels_rank_the_orders_that_actors_rank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("esault.spark.engine.reading.READ_ROWS", 400)
    command = [
        Path(sys.executable).with_name("tpchgen-cli"),
        "tbl",
        "-s",
        "0.001",
        "--tables=customer,orders,lineitem",
        "--output-dir=tpch",
    ]
    subprocess.run(command, check=True, capture_output=True)
    place = f"{FOLDER / 'tpch_q3'}.py"
    chain = Chain(place, tmp_path / "run")
    assert len(chain.job.layout.levels) == 3
    chain.drain()
    got, want = landed(chain.plan), wanted(LocalRuntime(locate(place).build({})))
    assert len(want["top"]) > 3
    assert final("tpch_q3", got) == final("tpch_q3", want)
