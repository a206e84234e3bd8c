"""What the page of MQTT shows is run against a broker."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

from mosquitto_server import Reader

from esault.testing import LocalRuntime

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "mqtt.md"


def test_the_lines_of_the_page_run(broker, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = {}
    for block in re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S):
        exec(compile(block.replace('"localhost"', f'"127.0.0.1", {broker.port}'), str(PAGE), "exec"), page)
    alarms = Reader(broker, "alarms/#")
    local = LocalRuntime(page["t"], real=True)
    local.plan.units["readings"].spout.check()
    hot, end = tmp_path / "hot.jsonl", time.monotonic() + 60
    while not (hot.exists() and hot.read_text()) and time.monotonic() < end:
        broker.send("plant/oven/temperature", b'{"celsius": 50}', b'{"celsius": 150}')  # again until it has subscribed
        for _ in range(200):
            local.step()
    local.drain()
    assert json.loads(hot.read_text().splitlines()[0]) == {"key": "plant/oven/temperature", "value": {"celsius": 150}}
    while not alarms.rows() and time.monotonic() < end:  # it comes by way of the broker
        time.sleep(0.01)
    assert alarms.rows()[0] == ("alarms/plant/oven/temperature", {"celsius": 150})
