"""What the page of Kafka shows is run against a broker."""

from __future__ import annotations

import re
from pathlib import Path

from esault.testing import LocalRuntime

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "kafka.md"


def test_the_first_lines_of_the_page_run(broker):
    block = re.search(r"^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S)[1]
    page = {}
    exec(compile(block.replace("localhost:9092", broker.servers), str(PAGE), "exec"), page)
    local = LocalRuntime(page["t"], real=True)
    for sink in local.plan.sinks:
        sink.sink.check()
    local.run_until_drained()
    assert sorted((m.key(), m.value()) for m in broker.messages("counts")) == [
        (b"cat", b'{"n": 1}'),
        (b"dog", b'{"n": 2}'),
    ]
