"""Messages of a real broker as tuples."""

from __future__ import annotations

import json
import time

import pytest

from esault import Topology
from esault.errors import SourceError, TopologyError
from esault.sinks import Collect
from esault.sources import KafkaSource
from esault.testing import LocalRuntime
from esault.testing.contract import check_spout
from esault.topology.context import Context


def fill(broker, topic, *values, **options):
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": broker.servers})
    for value in values:
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        producer.produce(topic, data, key=f"k{value}".encode(), **options)
    assert producer.flush(30) == 0


def read(source, **options) -> list[object]:
    t = Topology("read")
    t.spout("messages", source, **options).sink("out", Collect())
    local = LocalRuntime(t, real=True)
    local.run_until_drained()
    return [value for _, value in local.collected()["out"]]


def test_all_messages_of_all_partitions_of_all_topics_are_read_to_the_end(broker):
    one, two = broker.topic(4), broker.topic(1)
    fill(broker, one, *range(1000))
    fill(broker, two, *range(1000, 1100))
    source = KafkaSource([one, two], broker.servers, until="end")
    assert sorted(read(source, parallelism=2)) == list(range(1100))


def test_it_keeps_the_contract_of_sources(broker):
    topic = broker.topic(2)
    fill(broker, topic, *range(50))
    # A read does not wait for the broker, so many give nothing before the first message is there.
    assert check_spout(lambda: KafkaSource(topic, broker.servers, until="end"), idle=10_000_000) == 50


def test_what_stands_beside_the_value_comes_on_request_and_a_time_says_where_to_begin(broker):
    topic = broker.topic()
    fill(broker, topic, "old", timestamp=1_000_000)
    fill(broker, topic, "new", timestamp=2_000_000, headers={"source": b"test"})
    source = KafkaSource(topic, broker.servers, until="end", start=1500.0, metadata=True)
    assert read(source) == [
        {
            "value": "new",
            "timestamp": 2000.0,
            "headers": {"source": b"test"},
            "topic": topic,
            "partition": 0,
            "offset": 1,
        }
    ]


def test_a_message_that_a_deserializer_refuses_ends_the_run_or_is_counted(broker):
    topic = broker.topic()
    fill(broker, topic, 1, b"{", 2)
    with pytest.raises(Exception, match=rf"{topic}\[0\], offset 1: JSONDecodeError.*on_bad_message") as raised:
        read(KafkaSource(topic, broker.servers, until="end"))
    assert raised.type.__module__.startswith("esault")
    assert read(KafkaSource(topic, broker.servers, until="end", on_bad_message="skip")) == [1, 2]


def test_a_partition_that_is_added_is_found_and_read_from_its_first_message(broker):
    from confluent_kafka.admin import AdminClient, NewPartitions

    topic = broker.topic(1)
    fill(broker, topic, 1, 2)
    t = Topology("grows")
    t.spout("messages", KafkaSource(topic, broker.servers, every=0.2)).sink("out", Collect())
    local = LocalRuntime(t, real=True)
    local.run_for(1.0)
    admin = AdminClient({"bootstrap.servers": broker.servers})
    admin.create_partitions([NewPartitions(topic, 2)])[topic].result(30)
    fill(broker, topic, 3, partition=1)
    until = time.monotonic() + 60
    while len(local.collected()["out"]) < 3 and time.monotonic() < until:
        local.run_for(0.2)
    assert sorted(value for _, value in local.collected()["out"]) == [1, 2, 3]


def test_offsets_go_to_the_group_behind_what_was_processed(broker):
    from confluent_kafka import Consumer, TopicPartition

    topic = broker.topic()
    fill(broker, topic, *range(10))
    t = Topology("grouped")
    t.spout("messages", KafkaSource(topic, broker.servers, group_id="watched")).sink("out", Collect())
    local = LocalRuntime(t, real=True)
    asked = Consumer({"bootstrap.servers": broker.servers, "group.id": "watched"})
    until, offset = time.monotonic() + 60, -1
    while offset != 10 and time.monotonic() < until:
        local.run_for(0.2)
        offset = asked.committed([TopicPartition(topic, 0)], timeout=10)[0].offset
    asked.close()
    assert offset == 10


def test_an_offset_that_the_topic_has_forgotten_says_what_to_do(broker):
    topic = broker.topic()
    fill(broker, topic, 1)
    reader = KafkaSource(topic, broker.servers)
    reader.open(Context("messages"))
    split = reader.open_split(f"{topic}[0]", (99, None))
    until = time.monotonic() + 60
    with pytest.raises(SourceError, match=r"offset 99 is not there any more.*--restart"):
        while time.monotonic() < until:
            split.read(10)
    split.close()


def test_no_topic_and_no_broker(broker):
    with pytest.raises(SourceError, match=r"there is no topic 'nowhere'.*or correct its name$"):
        KafkaSource("nowhere", broker.servers).check()
    with pytest.raises(SourceError, match=r"127.0.0.1:1 does not answer.*see that the broker runs"):
        KafkaSource("t", "127.0.0.1:1").check()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"topics": []}, "write a topic's name"),
        ({"until": "now"}, 'write "end"'),
        ({"start": "latest"}, "a time in seconds since the epoch"),
        ({"on_bad_message": "drop"}, 'write "fail" or "skip"'),
        ({"value_deserializer": "avro"}, "a function from bytes"),
        ({"every": 0}, "every"),
    ],
)
def test_options_that_cannot_be_are_refused_with_what_can(options, said):
    with pytest.raises(TopologyError, match=said):
        KafkaSource(**{"topics": "t", **options})
