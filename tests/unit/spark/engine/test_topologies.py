"""The topologies of this project through the stages of the Spark engine: their tables are those of the actor engine's cores."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from esault.sinks import JsonLines
from esault.sinks.landing import parts
from esault.testing import LocalRuntime
from esault.topology.locate import locate

from .chain import Chain

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'esault[spark]'")

FOLDER = Path(__file__).parents[4] / "topologies"


def landed(chain: Chain) -> dict[str, Counter[Any]]:
    """By sink, how often each row landed."""
    return {s.name: Counter(_rows(s.sink)) for s in chain.plan.sinks}


def _rows(sink: Any) -> list[Any]:
    if isinstance(sink, JsonLines):
        lines = [json.loads(line) for line in Path(sink.path).read_text().splitlines()]
        return [json.dumps([line["key"], line["value"]]) for line in lines]
    import pyarrow.parquet as pq

    names = [column.name for column in sink.schema if not column.name.startswith("_")]
    rows = [row for part in parts(sink.path) for row in pq.read_table(part, columns=names).to_pylist()]
    return [json.dumps([row[names[0]], _value([row[name] for name in names[1:]])]) for row in rows]


def _value(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else values


def wanted(place: str, params: dict[str, Any]) -> dict[str, Counter[Any]]:
    local = LocalRuntime(locate(place).build(params))
    local.run_until_drained()
    return {s.name: Counter(json.dumps([row[0], row[1]]) for row in local.landed(s.name)) for s in local.plan.sinks}


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
    got, want = landed(chain), wanted(place, params)
    if name == "traffic":  # a road's running average depends on which car is first, its last one does not
        assert last(got.pop("roads")) == last(want.pop("roads"))
    assert got == want


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
    top = landed(chain)["top"]
    assert top == wanted(place, {})["top"] and len(top) > 3


def last(rows: Counter[str]) -> dict[str, Any]:
    """Of each key the row with most in it."""
    best: dict[str, Any] = {}
    for row in rows:
        key, (count, mean) = json.loads(row)
        if key not in best or count > best[key][0]:
            best[key] = (count, pytest.approx(mean))
    return best
