"""Rows as messages of a real broker: what is in them, and that none is lost."""

from __future__ import annotations

import json
import signal
import threading

import depth
import pytest

from esault import Topology
from esault.connectors.kafka.outbox import Outbox
from esault.errors import SinkError
from esault.flow.send.sink_call import waited
from esault.sinks import KafkaSink
from esault.sources import Items
from esault.testing import LocalRuntime
from esault.topology.context import Context
from esault.topology.sink import Row


def run(rows, sink):
    t = Topology("to-kafka")
    t.spout("rows", Items(rows)).sink("out", sink)
    LocalRuntime(t, real=True).run_until_drained()


def opened(sink):
    sink.check()
    sink.open(Context("out"))
    return sink


class TestWhatAMessageIs:
    def test_keys_are_text_and_values_json(self, broker):
        topic = broker.topic()
        run([("a", {"n": 1}), ("b", [1.5, None])], KafkaSink(topic, broker.servers))
        assert [(m.key(), json.loads(m.value())) for m in broker.messages(topic)] == [
            (b"a", {"n": 1}),
            (b"b", [1.5, None]),
        ]

    def test_a_row_has_headers_a_time_and_a_partition_of_its_own(self, broker):
        topic = broker.topic(4)
        sink = KafkaSink(
            topic,
            broker.servers,
            headers=lambda key, value: {"kind": "odd" if value % 2 else "even"},
            timestamp=lambda key, value: 1e9 + value,
            partition=lambda key, value: value % 4,
        )
        run([("k", n) for n in range(8)], sink)
        messages = broker.messages(topic)
        assert len(messages) == 8
        for message in messages:
            value = int(message.value())
            assert message.partition() == value % 4
            assert message.headers() == [("kind", b"odd" if value % 2 else b"even")]
            assert message.timestamp()[1] == 1_000_000_000_000 + value * 1000

    def test_none_is_no_key_and_a_tombstone(self, broker):
        topic = broker.topic()
        sink = opened(KafkaSink(topic, broker.servers))
        waited(sink.write([Row(None, 1, 0.0), Row("gone", None, 0.0)]), None)
        waited(sink.prepare(1), None)
        assert [(m.key(), m.value()) for m in broker.messages(topic)] == [(None, b"1"), (b"gone", None)]

    def test_a_row_goes_to_the_topic_that_a_function_names(self, broker):
        topics = {0: broker.topic(), 1: broker.topic()}
        run([("k", n) for n in range(10)], KafkaSink(lambda key, value: topics[value % 2], broker.servers))
        for rest, topic in topics.items():
            assert [int(m.value()) for m in broker.messages(topic)] == [n for n in range(10) if n % 2 == rest]

    def test_rows_of_a_key_share_a_partition_and_keep_their_order(self, broker):
        topic = broker.topic(4)
        run([(f"k{n % 17}", n) for n in range(3000)], KafkaSink(topic, broker.servers))
        found = {}
        for message in broker.messages(topic):
            found.setdefault(message.key(), []).append((message.partition(), int(message.value())))
        assert sum(map(len, found.values())) == 3000
        for of_key in found.values():
            assert len({partition for partition, _ in of_key}) == 1
            assert of_key == sorted(of_key)

    def test_a_topic_that_is_missing_is_made_when_that_is_asked_for(self, broker):
        sink = KafkaSink("made-by-the-sink", broker.servers, partitions=3)
        sink.check()
        sink.check()
        assert broker.messages("made-by-the-sink") == []


class TestWhatGoesWrong:
    def test_no_broker(self):
        pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed: pip install 'esault[kafka]'")
        with pytest.raises(SinkError, match=r"127.0.0.1:1 does not answer.*see that the broker runs"):
            KafkaSink("t", "127.0.0.1:1").check()

    def test_no_topic(self, broker):
        with pytest.raises(SinkError, match="there is no topic 'nowhere'.*partitions=4"):
            KafkaSink("nowhere", broker.servers).check()

    def test_a_wrong_password(self, broker):
        config = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "alice",
            "sasl.password": "wrong",
        }
        with pytest.raises(SinkError, match='correct "sasl.username" and "sasl.password"'):
            KafkaSink("t", broker.guarded, config=config).check()
        topic = broker.topic()
        right = {**config, "sasl.password": "wonder"}
        run([("a", 1)], KafkaSink(topic, broker.guarded, config=right))
        assert len(broker.messages(topic)) == 1

    def test_a_setting_that_there_is_not(self, broker):
        with pytest.raises(SinkError, match="No such configuration property"):
            KafkaSink("t", broker.servers, config={"no.such": 1}).check()

    def test_a_message_that_is_too_large(self, broker):
        topic = broker.topic(max_message_bytes="1000")
        sink = opened(KafkaSink(topic, broker.servers, config={"compression.type": "none"}))
        with pytest.raises(SinkError, match="too large.*max.message.bytes"):
            waited(sink.write([Row("k", "x" * 100_000, 0.0)]), None)
            waited(sink.prepare(1), None)

    @depth.deep("the coordinator of transactions is away in test_exactly_once.py")
    def test_a_broker_that_is_away_is_waited_for_and_nothing_is_lost(self, broker, caplog):
        topic = broker.topic()
        sink = opened(KafkaSink(topic, broker.servers))
        waited(sink.write([Row("k", n, 0.0) for n in range(100)]), None)
        waited(sink.prepare(1), None)
        broker.stop(signal.SIGKILL)
        back = threading.Timer(4, broker.start)
        back.start()
        try:
            waited(sink.write([Row("k", n, 0.0) for n in range(100, 200)]), None)
            waited(sink.prepare(2), None)
        finally:
            back.join()
        assert [int(m.value()) for m in broker.messages(topic)] == list(range(200))
        said = [record.message for record in caplog.records]
        assert any("waiting until one does" in line for line in said)
        assert any("answers again" in line for line in said)


@pytest.mark.parametrize(
    "odd", [{"headers": {"a": 1}}, {"headers": {"a": "b"}, "partition": "first"}, {"timestamp": 2**70}]
)
def test_what_the_client_has_no_form_for_is_told_with_its_topic(odd):
    pytest.importorskip("confluent_kafka")
    outbox = Outbox("KafkaSink", {"bootstrap.servers": "127.0.0.1:1"}, SinkError, lambda line: None)
    with pytest.raises(
        SinkError, match="KafkaSink: orders does not take a message: .*; headers are texts or bytes by name"
    ):
        outbox.put("orders", [{"key": None, "value": b"x", "timestamp": None, **odd}])
