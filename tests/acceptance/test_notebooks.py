"""A notebook in a kernel of its own: a topology in cells, on real processes, changed while it runs."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.slow
ROOT = str(Path(__file__).parents[2])
CELLS = [
    "import collections\nimport time\n\nimport esault\nfrom esault import Bolt, Topology, by_key\n"
    "from esault.sinks import Collect\nfrom esault.sources import Items, Paced",
    "STEP = 2\nKEYS = [f'k{n}' for n in range(50)]",
    "class Count(Bolt):\n    def __init__(self):\n        self.seen = collections.Counter()\n\n"
    "    def process(self, key, value):\n        self.seen[value % 3] += STEP\n        self.emit(key, sum(self.seen.values()))",
    "def rows():\n    return ((KEYS[n % 50], n) for n in range(6000))\n\n\n"
    "def topology():\n    t = Topology('cells')\n"
    "    counted = t.spout('rows', Paced(Items(rows), rate=800)).bolt('count', Count, grouping=by_key())\n"
    "    counted.sink('counts', Collect())\n    return t",
    "topology()",
    "handle = esault.start(topology, policy='none', checkpoint=0.5)\nassert handle.status().topology == 'cells'",
    "change = handle.scale('count', 3)\nassert (change['before'], change['after']) == (1, 3)\n"
    "while not handle.emitted('count'):\n    time.sleep(0.2)\n"
    "assert set(dict(handle.emitted('counts'))) <= set(KEYS)\nhandle",
    "assert 'esault' in repr(handle) or 'RunHandle' in repr(handle)\nreport = handle.wait()\nassert not handle.running\n"
    "assert handle.emitted('count') == report.collected['counts'] and '<table>' in report._repr_html_()\n"
    "print(report.ended, report.units['count'].tuples_in, len(report.collected['counts']),"
    " {max(v for k, v in report.collected['counts'] if k == key) for key in KEYS})",
    "def endless():\n    t = Topology('endless')\n"
    "    t.spout('rows', Paced(Items([('a', n) for n in range(1_000_000)]), rate=100)).bolt('count', Count, grouping=by_key())\n    return t",
    "again = esault.start(endless, policy='none')\nassert again.status().topology == 'endless'\nprint(again.stop().ended)",
    "class Fails(Bolt):\n    def process(self, key, value):\n        raise ValueError('no such thing')\n\n\n"
    "def failing():\n    t = Topology('failing')\n    t.spout('rows', Items([('a', 1)])).bolt('fails', Fails, grouping=by_key())\n    return t\n\n\n"
    "try:\n    esault.start(failing).wait()\nexcept esault.TopologyFailed as error:\n    print('ValueError: no such thing' in str(error))",
    "left = esault.start(endless, policy='none')\nassert left.status().topology == 'endless'\nleft",
]


def test_a_topology_in_cells_runs_in_the_background_is_scaled_and_ends_with_the_kernel(tmp_path, monkeypatch):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [ROOT, os.environ.get("PYTHONPATH")])))
    monkeypatch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    client = nbclient.NotebookClient(book, timeout=120, resources={"metadata": {"path": str(tmp_path)}})
    done = client.execute()
    outputs = [cell.outputs for cell in done.cells]
    shown = outputs[4][0]["data"]
    assert "```mermaid" in shown["text/markdown"] and "by_key()" in shown["text/plain"]
    assert "<table>" in outputs[6][-1]["data"]["text/html"]
    printed = ["".join(each.get("text", "") for each in of if each["output_type"] == "stream") for of in outputs]
    assert printed[7] == "drained 6000 6000 {240}\n"
    assert printed[9] in ("drained\n", "paused\n", "stopped\n"), "the last, where it had not begun yet"
    assert printed[10] == "True\n"
    for process in psutil.process_iter():
        try:
            assert not " ".join(process.cmdline()).startswith("esault endless")
        except psutil.Error:
            continue
