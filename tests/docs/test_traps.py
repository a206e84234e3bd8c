"""What the page of traps quotes is what the engine says."""

from __future__ import annotations

import logging
import re
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from esault import Bolt, Topology
from esault.control.report.late_lines import late_lines
from esault.sources import TextFiles
from esault.testing import LocalRuntime
from esault.topology.doubts import lost_times
from esault.windows import TumblingWindow

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "traps.md"


class Sessions(Bolt):
    def process(self, key, value): ...


def logs_of_the_same_hours(folder):
    """A topology that reads three logs one after the other, and the report of a run in which so many lines were late."""
    for name in "abc":
        (folder / f"{name}.log").write_text("1\n")
    t = Topology("logs")
    lines = t.spout("lines", TextFiles(folder / "*.log"), time=float)
    lines.key_by(str).window("sessions", Sessions, TumblingWindow(60))
    plan = t.plan()
    plan.units["lines"].spout.check()
    local = LocalRuntime(plan)
    local.run_until_drained()
    report = local.report()
    return plan, replace(report, units={**report.units, "sessions": replace(report.units["sessions"], late=8200)})


def test_each_message_on_the_page_is_the_engine_s(monkeypatch, caplog, tmp_path):
    text = PAGE.read_text()
    module = ModuleType("traps")
    monkeypatch.setitem(sys.modules, "traps", module)
    with caplog.at_level(logging.WARNING):
        for found in re.finditer(r"^```python\n(.*?)^```$", text, re.M | re.S):
            above = "\n" * text.count("\n", 0, found.start(1))  # code is found where it stands
            exec(compile(above + found.group(1), str(PAGE), "exec", dont_inherit=True), vars(module))
    said = [str(getattr(module, name).value) for name in ("refused", "returned", "changed", "no_data", "opened")]
    said += [record.getMessage() for record in caplog.records if "milliseconds" in record.getMessage()]
    said += lost_times(module.joined().plan())
    said.append(module.warning)
    said += late_lines(*logs_of_the_same_hours(tmp_path))
    assert lost_times(module.joined(time=float).plan()) == []
    quoted = [
        " ".join(block.split()) for kind, block in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S) if not kind
    ]
    assert sorted(quoted) == sorted(" ".join(each.split()) for each in said)
