"""Dead letters of a run in this process: in the file that the topology names where its sinks write, too, and else in memory."""

from __future__ import annotations

import json

from esault import Topology, dead_letter, run
from esault.sinks import Collect
from esault.sources import Items
from esault.testing import LocalRuntime


def halves(path):
    t = Topology("halves")
    t.spout("numbers", Items([("a", "1"), ("b", "x")])).map(int, on_error=dead_letter(str(path))).sink("out", Collect())
    return t


def test_the_local_engine_keeps_them_in_the_file_that_the_topology_names(tmp_path):
    report = run(lambda: halves(tmp_path / "dead.jsonl"), engine="local")
    (file,) = tmp_path.glob("dead.*.jsonl")
    (record,) = map(json.loads, file.read_text().splitlines())
    assert (record["key"], record["value"]) == ("b", "x")
    assert report.units["numbers"].dead_letters == 1


def test_a_test_keeps_them_in_memory(tmp_path):
    local = LocalRuntime(halves(tmp_path / "dead.jsonl"))
    local.run_until_drained()
    assert [record["value"] for record in local.dead_letters] == ["x"]
    assert not list(tmp_path.iterdir())
