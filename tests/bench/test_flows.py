"""Every peer's flow, for real, on a tiny load, where the peer is installed."""

from __future__ import annotations

import os
import sys

import depth
import pytest

deep = pytest.mark.skipif(depth.PROFILE != "deep", reason="in the deep run: make test-deep")


def _python(name):
    from bench.peers.environments import FOLDER, PEERS, Found, find

    if name not in PEERS:
        pytest.importorskip(name)
        return sys.executable
    found = find(name, FOLDER)
    if not isinstance(found, Found):
        pytest.skip(found)
    return found.python


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "name", "arguments"),
    [
        ("sentences", "bytewax", ["--processes", "1"]),
        pytest.param("records", "bytewax", ["--processes", "2"], marks=deep),
        ("sentences", "pathway", ["--threads", "1"]),
        ("records", "pathway", ["--threads", "1"]),
        ("sentences", "flink", ["--how", "sql"]),
        ("records", "flink", ["--how", "sql"]),
        ("sentences", "flink", ["--how", "mini-batch", "--parallelism", "2"]),
        ("records", "flink", ["--how", "mini-batch", "--parallelism", "2"]),
        ("sentences", "flink", ["--how", "datastream"]),
        ("records", "flink", ["--how", "datastream"]),
        # Spark takes a quarter of a minute to start: each load and each way once.
        pytest.param("records", "spark", ["--how", "native"], marks=deep),
        pytest.param("sentences", "spark", ["--how", "python"], marks=deep),
    ],
    ids=lambda value: value if isinstance(value, str) else value[1],
)
def test_a_peers_flow_puts_out_what_it_must(name, arguments, kind, tmp_path):
    from bench.kit.measure import command
    from bench.workloads.loads import DISTINCT, make

    python = _python(name)
    load = make(kind, DISTINCT[kind] * (1 if name == "spark" or "datastream" in arguments else 4), tmp_path)
    what = "words" if kind == "sentences" else "sums"
    run = command(load, f"bench.peers.{name}_flows", what, load.path, load.passes, *arguments, python=python)
    assert run["rows"] > 0
    assert run["tuples_per_second"] > 0
    assert run["start_up_seconds"] > 0
    assert not [left for left in os.listdir(tmp_path) if left != load.path.name]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "what"), [("sentences", "words_batch"), pytest.param("records", "sums_batch", marks=deep)]
)
def test_vectorised_user_code_counts_the_same(kind, what, tmp_path):
    from bench.kit.measure import command
    from bench.workloads.loads import make

    load = make(kind, 20_000, tmp_path)
    run = command(load, "bench.kit.esault_run", what, load.path, load.passes)
    assert 0 < run["rows"] < load.tuples
