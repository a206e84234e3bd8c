"""Where the rows of a sink go, as the page shows it: it names the place, and no password."""

import pytest

from esault import connectors
from esault.sinks import (
    JsonLines,
    KafkaSink,
    MqttSink,
    NatsSink,
    PostgresSink,
    RabbitMQSink,
    RabbitMQStreamSink,
    RedisSink,
    SseSink,
    WebhookSink,
    WebSocketSink,
)
from esault.topology.sink import Sink

AMQP = "amqp://ann:secret@localhost/%2F"


@pytest.mark.parametrize(
    ("sink", "place"),
    [
        (JsonLines("out.jsonl"), "out.jsonl"),
        (KafkaSink("counts"), "topic counts"),
        (KafkaSink(lambda key, value: key), "topics by a function"),
        (MqttSink("alarms", user="ann", password="secret"), "alarms"),
        (NatsSink("LARGE", "large.orders", "nats://ann:secret@localhost"), "stream LARGE"),
        (PostgresSink("host=db password=secret", "totals", {"word": str, "n": int}), "table totals"),
        (RabbitMQSink("large", AMQP), "queue 'large'"),
        (RabbitMQStreamSink("large", "rabbitmq-stream://ann:secret@localhost/%2F"), "stream 'large'"),
        (RedisSink("totals", "redis://:secret@localhost"), "stream totals"),
        (SseSink(8090), "port 8090 of 127.0.0.1"),
        (WebSocketSink(8091, token="secret"), "port 8091 of 127.0.0.1"),
        (
            WebhookSink("https://ann:secret@example.org/hook?token=secret", dead_letters="r.jsonl"),
            "https://example.org/hook",
        ),
    ],
    ids=lambda given: type(given).__name__ if isinstance(given, Sink) else None,
)
def test_the_place_is_named_and_no_password(sink, place):
    assert sink.destination() == place


def test_each_sink_to_a_server_says_it():
    found = [connectors.find(name) for name in connectors.names()]
    sinks = [each for each in found if issubclass(each, Sink) and each.__module__.startswith("esault.connectors.")]
    assert KafkaSink in sinks
    assert [each for each in sinks if each.destination is Sink.destination] == []
