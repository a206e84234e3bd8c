"""Connectors by name, and what a sink or a spout of one's own says of itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from packages import install

from esault import Bolt, Sink, Spout, Topology, TopologyError, by_key, connectors
from esault.connectors.lookup import Lookup
from esault.errors import UsageError
from esault.runtime.session.resolve_hosts import _check_plan, _written
from esault.sources import Items, Lines, MicroBatches, Paced

ROOT = Path(__file__).parents[2]
PROGRAM = '''
import json
from pathlib import Path
from esault import Bolt, Sink, Topology, by_key, run
from esault.sources import Items


class Same(Bolt):
    def process(self, key, value):
        self.emit(key, value)


class Kept(Sink):
    """A sink of a user's own whose rows come back to the command."""

    collects = True

    def open(self, context):
        self.file = Path(context.run_dir) / f"kept-{context.sub_unit}.jsonl"

    def write(self, rows):
        with self.file.open("a") as file:
            file.writelines(json.dumps([row.key, row.value]) + "\\n" for row in rows)

    def collected_rows(self, run_dir, name):
        return [tuple(json.loads(line)) for file in Path(run_dir).glob("kept-*") for line in file.open()]


def topology():
    t = Topology("kept")
    t.spout("in", Items([("a", 1), ("b", 2)])).bolt("same", Same, grouping=by_key()).sink("out", Kept())
    return t


if __name__ == "__main__":
    print(sorted(run(topology, policy="none").collected["out"]))
'''


class Same(Bolt):
    def process(self, key, value):
        self.emit(key, value)


class Kept(Sink):
    collects = True

    def write(self, rows):
        pass


class Twofold(Sink):
    """Writes two files."""

    owns_path = True

    def __init__(self, one, two):
        self.one, self.two = one, two

    def write(self, rows):
        pass

    def written_paths(self):
        return (self.one, self.two)


class OnEachHost(Twofold):
    shares_paths = False


class Plain(Sink):
    """As sinks were written before."""

    def __init__(self, path=None):
        if path is not None:
            self.path = path

    def write(self, rows):
        pass


class FromCommand(Spout):
    reads_command = True

    def read(self, limit):
        return []


def plan(spout, *sinks):
    t = Topology("t")
    stream = t.spout("in", spout).bolt("same", Same, grouping=by_key())
    for number, sink in enumerate(sinks):
        stream.sink(f"s{number}", sink)
    return t.plan()


def test_the_engines_connectors_have_names():
    names = connectors.names()
    assert {"TextFiles", "Lines", "Collect", "SparkTable", "PostgresLookup"} <= set(names)
    assert "read_collected" not in names
    for name in names:
        assert issubclass(connectors.find(name), (Spout, Sink, Lookup))


def test_one_of_a_program_and_one_of_a_package(tmp_path, monkeypatch):
    connectors.register("Kept", Kept)
    try:
        assert connectors.find("Kept") is Kept
        assert "Kept" in connectors.names()
    finally:
        connectors.unregister("Kept")
    source = "from esault import Sink\nclass Queue(Sink):\n    def write(self, rows): ...\nNothing = dict\n"
    install(tmp_path, "queue_connector", source, "esault.connectors", Queue="Queue", Nothing="Nothing")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert connectors.find("Queue").__name__ == "Queue"
    with pytest.raises(UsageError, match="no class derived from Spout, Sink or Lookup"):
        connectors.find("Nothing")


@pytest.mark.parametrize("wrong", [dict, 7, Plain()])
def test_what_is_no_connector_is_refused(wrong):
    with pytest.raises(UsageError, match="no class derived from Spout, Sink or Lookup"):
        connectors.register("mine", wrong)


@pytest.mark.parametrize("spout", [Lines(), FromCommand(), Paced(Lines(), rate=1), MicroBatches(Lines())])
def test_a_spout_of_the_command_is_refused_on_several_hosts(spout):
    with pytest.raises(UsageError, match="unit 'in' reads what only this command has"):
        _check_plan(plan(spout))


def test_a_sink_that_collects_is_refused_on_several_hosts():
    with pytest.raises(UsageError, match="sink 's0' collects rows"):
        _check_plan(plan(Items([]), Kept()))


def test_all_that_sinks_write_must_be_seen_by_all_hosts_but_what_is_each_hosts_own():
    sinks = [Plain(), Plain("/p"), Twofold("/a", "/b"), OnEachHost("/c", "/d")]
    checked = plan(Items([]), *sinks)
    _check_plan(checked)
    assert [(w.what, w.path, w.unit) for w in _written(checked, None)] == [
        ("sink 's1'", "/p", "same"),
        ("sink 's2'", "/a", "same"),
        ("sink 's2'", "/b", "same"),
    ]


def test_two_sinks_that_own_their_paths_do_not_share_one():
    with pytest.raises(TopologyError, match="'s0' and 's1' both write /b"):
        plan(Items([]), Twofold("/a", "/b"), Twofold("/b", "/c"))


def test_a_sink_of_ones_own_brings_rows_to_the_report(tmp_path):
    (tmp_path / "kept.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "kept.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.stdout == "[('a', 1), ('b', 2)]\n", done.stderr
