"""Lines that sources leave out are counted where people look."""

from __future__ import annotations

import json

import pytest

from esault import Topology
from esault.sinks import Collect
from esault.sources import JsonFiles, Paced
from esault.testing import LocalRuntime


@pytest.mark.parametrize("within", [lambda spout: spout, lambda spout: Paced(spout, rate=1000)])
def test_lines_that_were_left_out_stand_in_the_report(tmp_path, within):
    lines = [json.dumps({"user": f"u{i}"}) if i % 4 else "{broken" for i in range(40)]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines) + "\n")
    t = Topology("lines")
    t.spout("rows", within(JsonFiles(str(tmp_path / "*.jsonl"), key="user", on_bad_line="skip"))).sink("out", Collect())
    local = LocalRuntime(t)
    local.run_until_drained()
    report = local.report()
    assert (report.units["rows"].tuples_out, report.units["rows"].skipped) == (30, 10)
    assert "10 skipped" in str(report)
