"""What the page of HTTP shows is run: rows come by real POSTs and go by real POSTs."""

from __future__ import annotations

import re
import urllib.request
from pathlib import Path

import pytest
from ports import free_port

pytest.importorskip("aiohttp", reason="aiohttp is not installed: pip install 'esault[http]'")

from http_receiver import receiving

from esault.testing import LocalRuntime

pytestmark = pytest.mark.slow
PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "http.md"


def test_the_lines_of_the_page_run():
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    with receiving() as service:
        port = free_port()
        page = {}
        first = blocks[0].replace("8080", str(port)).replace("http://localhost:9000/paid", service.url)
        exec(compile(first, str(PAGE), "exec"), page)
        for block in blocks[1:]:
            exec(compile(block, str(PAGE), "exec"), page)
        local = LocalRuntime(page["t"], real=True)
        local.run_for(0.1)
        asked = urllib.request.Request(f"http://127.0.0.1:{port}/orders", b'{"id": 1, "amount": 5}')
        with urllib.request.urlopen(asked, timeout=20) as answer:
            assert answer.status == 202
        for _ in range(200):
            local.run_for(0.1)
            if service.got:
                break
        local.drain()
        local.run_until_drained()
        assert [got.body for got in service.got] == [{"id": 1, "amount": 5, "paid": True}]
