"""Formats with a schema through a real broker, with a stand-in for the registry."""

from __future__ import annotations

import pytest

pytest.importorskip("fastavro", reason="fastavro is not installed: pip install 'esault[schema-registry]'")
schema_registry = pytest.importorskip("schema_registry")

from order_pb2 import Order  # noqa: E402

from esault import Topology  # noqa: E402
from esault.formats import Avro, JsonSchema, Protobuf  # noqa: E402
from esault.sinks import Collect, KafkaSink  # noqa: E402
from esault.sources import Items, KafkaSource  # noqa: E402
from esault.testing import LocalRuntime  # noqa: E402

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "who", "type": "string"}],
}
OBJECT = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"], "title": "Order"}


@pytest.fixture
def registry():
    with schema_registry.serving() as found:
        yield found


def written(sink, values):
    t = Topology("written")
    t.spout("values", Items([("k", value) for value in values])).sink("out", sink)
    LocalRuntime(t, real=True).run_until_drained()


def read(source):
    t = Topology("read")
    t.spout("messages", source).sink("out", Collect())
    local = LocalRuntime(t, real=True)
    local.run_until_drained()
    return [value for _, value in local.collected().get("out", ())]


def test_values_come_back_as_they_were_and_their_schemas_are_registered(broker, registry):
    dicts = [{"id": n, "who": "alice"} for n in range(20)]
    for to, back, values in (
        (Avro(ORDER, registry=registry.url), Avro(registry=registry.url), dicts),
        (JsonSchema(OBJECT, registry=registry.url), JsonSchema(registry=registry.url), dicts),
        (
            Protobuf(Order, registry=registry.url),
            Protobuf(Order, registry=registry.url),
            [Order(id=n) for n in range(9)],
        ),
        (Avro(ORDER), Avro(ORDER), dicts),
    ):
        topic = broker.topic()
        written(KafkaSink(topic, broker.servers, value_serializer=to), values)
        assert read(KafkaSource(topic, broker.servers, until="end", value_deserializer=back)) == values
        assert (f"{topic}-value" in registry.subjects) == (to is not back and to._registry is not None)


def test_a_message_of_no_schema_is_a_bad_one_and_a_registry_that_is_away_makes_none(broker, registry):
    topic, dead = broker.topic(), broker.topic()
    written(
        KafkaSink(topic, broker.servers, value_serializer=Avro(ORDER, registry=registry.url)), [{"id": 1, "who": "a"}]
    )
    written(KafkaSink(topic, broker.servers, value_serializer="json"), [{"id": 2}])
    options = {"until": "end", "on_bad_message": "dead-letter", "dead_letter_topic": dead}
    source = KafkaSource(topic, broker.servers, value_deserializer=Avro(registry=registry.url), **options)
    assert read(source) == [{"id": 1, "who": "a"}]
    assert [message.value() for message in broker.messages(dead)] == [b'{"id": 2}']
    registry.status = 503
    away = Avro(registry={"url": registry.url, "max.retries": 0})
    with pytest.raises(Exception, match=r"offset 0: the schema registry .* fails"):
        read(KafkaSource(topic, broker.servers, value_deserializer=away, **options))
    assert len(broker.messages(dead)) == 1
