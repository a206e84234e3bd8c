"""What the page of traps quotes is what the engine says."""

from __future__ import annotations

import logging
import re
import sys
from pathlib import Path
from types import ModuleType

from esault.topology.doubts import lost_times

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "traps.md"


def test_each_message_on_the_page_is_the_engine_s(monkeypatch, caplog):
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
    assert lost_times(module.joined(time=float).plan()) == []
    quoted = [
        " ".join(block.split()) for kind, block in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S) if not kind
    ]
    assert sorted(quoted) == sorted(" ".join(each.split()) for each in said)
