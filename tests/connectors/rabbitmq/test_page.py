"""What the page of RabbitMQ shows is run against a server."""

from __future__ import annotations

import re
from pathlib import Path

from esault.sources import RabbitMQSource
from esault.testing import LocalRuntime

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "rabbitmq.md"


def test_the_first_lines_of_the_page_run(server):
    with server.channel() as channel:
        channel.queue_declare("orders", durable=True)
    server.send("orders", b'{"paid": 50}', b'{"paid": 150}')
    block = re.search(r"^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S)[1]
    block = block.replace("amqp://guest:guest@localhost:5672/%2F", server.url).replace(", parallelism=2", "")
    page = {"RabbitMQSource": RabbitMQSource}
    exec(compile(block, str(PAGE), "exec"), page)
    local = LocalRuntime(page["t"], real=True)
    for unit in local.plan.units.values():
        for checked in (unit.spout, *(sink.sink for sink in local.plan.sinks)):
            if checked is not None:
                checked.check()
    local.plan.units["orders"].spout._ends = True
    local.run_until_drained()
    assert [body for _, body in server.messages("large-orders")] == [b'{"paid": 150}']


def test_the_lines_about_streams_run(server):
    server.stream(b'{"paid": 50}', b'{"paid": 150}', name="events")
    with server.channel() as channel:
        channel.queue_declare("large-orders", durable=True)
        channel.queue_purge("large-orders")
    page: dict = {}
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    for block in blocks[:2]:
        exec(compile(block.replace("amqp://guest:guest@localhost:5672/%2F", server.url), str(PAGE), "exec"), page)
    LocalRuntime(page["s"], real=True).run_until_drained()
    assert [body for _, body in server.messages("large-orders")] == [b'{"paid": 50}', b'{"paid": 150}']
