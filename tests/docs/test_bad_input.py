"""The page on bad servers and bad input names tests that there are, and each connector."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/bad-input.md").read_text()


@cache
def names_in(file: str) -> set[str]:
    path = ROOT / (file if file.startswith("tests/") else f"tests/connectors/{file}")
    return set(re.findall(r"def (test_\w+)\(", path.read_text()))


def test_each_test_that_is_named_is_there():
    file, named = "", 0
    for found in re.finditer(r"`([\w/]+\.py)?::(test_\w+)`", PAGE):
        file = found[1] or file
        assert found[2] in names_in(file), found[0]
        named += 1
    assert named > 60
    assert named == len(re.findall(r"test_\w+`", PAGE))


def test_each_connector_that_has_a_server_is_there():
    for name in (
        *("KafkaSource", "KafkaSink", "PostgresSink", "PostgresChanges", "PostgresLookup", "RedisSource", "RedisSink"),
        *("RedisLookup", "NatsSource", "NatsSink", "RabbitMQSource", "RabbitMQSink", "RabbitMQStreamSource"),
        *("RabbitMQStreamSink", "MqttSource", "MqttSink", "HttpPollSource", "SseSource", "WebSocketSource"),
        "WebhookSink",
    ):
        assert f"`{name}`" in PAGE
