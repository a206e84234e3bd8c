"""A broker that asks for a password, speaks TLS or forbids something: each refusal says what to do."""

from __future__ import annotations

import time

import kafka_broker
import pytest

from esault.errors import SinkError, SourceError
from esault.flow.send.sink_call import waited
from esault.sinks import KafkaSink
from esault.sources import KafkaSource
from esault.topology.context import Context
from esault.topology.sink import Row

SASL = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": kafka_broker.USER,
    "sasl.password": kafka_broker.PASSWORD,
}


def tls(broker, **options):
    return {"security.protocol": "SSL", "ssl.ca.location": str(broker.certificate), **options}


def sent(sink, *values):
    sink.check()
    sink.open(Context("out", run="run-1", lineage="folder-1"))
    try:
        waited(sink.write([Row("k", value, 0.0) for value in values]), None)
        handle = waited(sink.prepare(1), None)
        waited(sink.commit(1, handle), None)
    finally:
        sink.close()


def first(source, topic):
    """The first rows of a partition."""
    source.check()
    source.open(Context("messages"))
    reader = source.open_split(f"{topic}[0]", None)
    until = time.monotonic() + 60
    try:
        while time.monotonic() < until:
            if rows := reader.read(10):
                return list(rows.values)
    finally:
        reader.close()
    raise AssertionError("nothing came")


class TestTls:
    def test_a_certificate_that_is_known_is_enough(self, broker):
        for guarantee in ("at-least-once", "exactly-once"):
            topic = broker.topic()
            sent(KafkaSink(topic, broker.tls, guarantee=guarantee, config=tls(broker)), 1)
            assert first(KafkaSource(topic, broker.tls, config=tls(broker)), topic) == [1]

    def test_one_that_is_not_known_is_refused_with_the_remedy(self, broker):
        for cls, error in ((KafkaSource, SourceError), (KafkaSink, SinkError)):
            with pytest.raises(error, match='certificate verify failed.*"ssl.ca.location"'):
                cls("t", broker.tls, config={"security.protocol": "SSL"}).check()

    def test_a_setting_whose_file_is_not_there_is_named(self, broker):
        with pytest.raises(SourceError, match="ssl.ca.location failed.*correct it"):
            KafkaSource("t", broker.tls, config=tls(broker, **{"ssl.ca.location": "/nowhere.pem"})).check()

    def test_tls_where_there_is_none(self, broker):
        with pytest.raises(SourceError, match=r'"security.protocol"'):
            KafkaSource("t", broker.servers, config=tls(broker)).check()


class TestAcls:
    def test_a_topic_that_may_not_be_read(self, broker):
        topic = broker.topic()
        broker.allow_only("TOPIC", topic, "DESCRIBE")
        with pytest.raises(SourceError, match=r"TOPIC_AUTHORIZATION_FAILED\); the broker's ACLs do not allow it"):
            first(KafkaSource(topic, broker.guarded, config=SASL), topic)

    def test_a_topic_that_may_not_be_written(self, broker):
        topic = broker.topic()
        broker.allow_only("TOPIC", topic, "DESCRIBE")
        with pytest.raises(SinkError, match=rf"{topic} does not take a message.*ACLs do not allow it"):
            sent(KafkaSink(topic, broker.guarded, config=SASL), 1)

    def test_a_topic_that_may_not_be_described_looks_as_if_it_were_missing(self, broker):
        topic = broker.topic()
        broker.allow_only("TOPIC", topic, "DESCRIBE_CONFIGS")
        with pytest.raises(SourceError, match="there is no topic.*allow this user to describe it|ACLs do not allow it"):
            KafkaSource(topic, broker.guarded, config=SASL).check()

    def test_transactions_that_may_not_be(self, broker):
        topic = broker.topic()
        broker.allow_only("TRANSACTIONAL_ID", "esault-forbidden", "DESCRIBE")
        sink = KafkaSink(topic, broker.guarded, guarantee="exactly-once", config=SASL)
        sink.open(Context("out", run="run-1", lineage="forbidden"))
        try:
            with pytest.raises(SinkError, match="ACLs do not allow these transactional ids: allow the prefix esault-"):
                waited(sink.write([Row("k", 1, 0.0)]), None)
        finally:
            sink.close()
