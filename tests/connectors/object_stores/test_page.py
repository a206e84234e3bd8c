"""What the page of object stores shows is run against a server."""

from __future__ import annotations

import json
import re
from pathlib import Path

from esault.testing import LocalRuntime

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "object-stores.md"


def test_the_first_lines_of_the_page_run(server, bucket):
    server.put(bucket, "orders/a.jsonl", '{"id": 1}\n{"id": 2}\n')
    page: dict = {}
    for block in re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S):
        exec(compile(block.replace("my-bucket", bucket), str(PAGE), "exec"), page)
    LocalRuntime(page["t"], real=True).run_until_drained()
    rows = [json.loads(line) for key in server.keys(bucket, "copy/2") for line in server.body(bucket, key).splitlines()]
    assert rows == [{"key": 1, "value": {"id": 1}}, {"key": 2, "value": {"id": 2}}]
