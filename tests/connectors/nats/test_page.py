"""What the page of NATS shows is run against a server."""

from __future__ import annotations

import json
import re
from pathlib import Path

from esault.testing import LocalRuntime

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "nats.md"


def test_the_lines_of_the_page_run(server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    server.stream(("eu", b'{"paid": 50}'), ("us", b'{"paid": 150}'), name="ORDERS")
    page: dict = {}
    for block in re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S):
        exec(compile(block.replace("nats://localhost:4222", server.url), str(PAGE), "exec"), page)
    for sink in page["t"].plan().sinks:
        sink.sink.check()
    LocalRuntime(page["t"], real=True).run_until_drained()
    rows = [json.loads(line) for line in (tmp_path / "large.jsonl").read_text().splitlines()]
    assert [(row["key"], row["value"]) for row in rows] == [("ORDERS.us", {"paid": 150})]
    (message,) = server.messages("LARGE")
    assert (message.subject, message.headers["Key"]) == ("large.orders", "ORDERS.us")
