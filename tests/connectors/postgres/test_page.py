"""What the page of PostgreSQL shows is run against a server."""

from __future__ import annotations

import re
from pathlib import Path

from esault.testing import LocalRuntime

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "postgres.md"


def test_the_first_lines_of_the_page_run(server):
    page: dict = {}
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    for block, table in zip(blocks, ("totals", "copy_of_totals", "sums", None), strict=True):
        there = block.replace("host=localhost port=5432", f"host=127.0.0.1 port={server.port}")
        exec(compile(there, str(PAGE), "exec"), page)
        local = LocalRuntime(page["t"], real=table is not None)
        local.run_until_drained()
        if table == "sums":
            assert server.ask("select length, total from sums") == [(3, 5)]
        elif table is not None:
            assert server.ask(f"select word, total from {table} order by word") == [("cat", 3), ("dog", 2)]
    found = dict(local.emitted("with_total"))
    assert found["order-1"] == ({"item": "cat", "n": 2}, {"word": "cat", "total": 3}) and found["order-2"][1] is None
    for slot in ("copy_of_totals", "sums"):
        server.ask("select pg_drop_replication_slot(%s)", slot)
