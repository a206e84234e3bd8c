"""What the page of Redis shows is run against a server."""

from __future__ import annotations

import json
import re
from pathlib import Path

from esault.testing import LocalRuntime

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "redis.md"


def test_the_first_lines_of_the_page_run(server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page: dict = {}
    server.client.delete("customer:7", "customer:8")  # of other tests
    server.client.hset("customer:7", "name", "Ada")
    for block in re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S):
        exec(compile(block.replace("redis://localhost:6379/0", server.url), str(PAGE), "exec"), page)
        looks_up = page.get("looks_up")
        local = LocalRuntime(looks_up or page.get("back", page["t"]), real=looks_up is None)
        local.run_until_drained()
    found = dict(local.emitted("with_customer"))
    assert found["order-1"] == ({"who": 7, "n": 2}, {"name": "Ada"}) and found["order-2"][1] is None
    rows = [json.loads(line) for line in (tmp_path / "entries.jsonl").read_text().splitlines()]
    assert rows[0]["value"] == {"key": "cat", "value": "1"}
    assert [row["key"] for row in rows] == ["cat", "dog", "cat"]
    assert server.entries("totals") == [
        {"key": "cat", "value": "1"},
        {"key": "dog", "value": "2"},
        {"key": "cat", "value": "3"},
    ]
