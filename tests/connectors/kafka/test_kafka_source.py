"""Messages of a real broker as tuples."""

from __future__ import annotations

import json
import re
import time

import pytest
import waiting

from esault import Topology
from esault.errors import SourceError, TopologyError
from esault.sinks import Collect, KafkaSink
from esault.sources import Items, KafkaSource
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
    return [value for _, value in local.collected().get("out", ())]


def reading(source):
    """A run without end, and the values that it has read."""
    t = Topology("read")
    t.spout("messages", source).sink("out", Collect())
    local = LocalRuntime(t, real=True)
    return local, lambda: [value for _, value in local.collected().get("out", ())]


def until(local, reached, seconds=60.0):
    end = time.monotonic() + seconds
    while not reached() and time.monotonic() < end:
        local.run_for(0.2)
    assert reached()


def grow(broker, topic, partitions):
    from confluent_kafka.admin import AdminClient, NewPartitions

    admin = AdminClient({"bootstrap.servers": broker.servers})
    admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(30)


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


def test_another_spout_waits_until_all_that_is_in_a_topic_has_been_read(broker):
    topic = broker.topic(3)
    fill(broker, topic, *range(300))
    t = Topology("after")
    numbers = t.spout("numbers", KafkaSource(topic, broker.servers), parallelism=2)
    asked = t.spout("asked", Items([(f"k{n}", n) for n in range(300)]), after=numbers)
    asked.join_table("found", numbers.key_by(lambda n: f"k{n}")).sink("out", Collect())
    local = LocalRuntime(t, real=True)
    until(local, lambda: len(local.collected().get("out", ())) == 300)
    assert sorted(value for _, value in local.collected()["out"]) == [(n, n) for n in range(300)]
    local.drain()
    local.run_until_drained()


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


def test_a_message_that_a_deserializer_refuses_ends_the_run_or_is_counted(broker, caplog):
    topic = broker.topic()
    fill(broker, topic, 1, b"{", 2)
    with pytest.raises(Exception, match=rf"{topic}\[0\], offset 1: JSONDecodeError.*on_bad_message") as raised:
        read(KafkaSource(topic, broker.servers, until="end"))
    assert raised.type.__module__.startswith("esault")
    assert read(KafkaSource(topic, broker.servers, until="end", on_bad_message="skip")) == [1, 2]
    assert re.search(r"offset 1: JSONDecodeError: .* \(the message is left out; further ones are only", caplog.text)


def test_what_stands_beside_a_message_that_is_refused_is_read_once(broker):
    topic, asked = broker.topic(), []
    fill(broker, topic, *range(20), b"{", *range(20, 40))

    def number(data):
        asked.append(data)
        return int(data)

    source = KafkaSource(topic, broker.servers, until="end", value_deserializer=number, on_bad_message="skip")
    assert read(source) == list(range(40))
    assert sorted(each for each in asked if each != b"{") == sorted(str(n).encode() for n in range(40))
    assert asked.count(b"{") <= 2


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


def test_a_stranger_in_the_group_takes_no_messages_away_and_is_said(broker, caplog):
    from confluent_kafka import Consumer

    topic = broker.topic(2)
    fill(broker, topic, *range(10))
    stranger = Consumer({"bootstrap.servers": broker.servers, "group.id": "shared", "auto.offset.reset": "latest"})
    stranger.subscribe([topic])
    for _ in range(600):  # the group gives it all partitions
        stranger.poll(0.1)
        if len(stranger.assignment()) == 2:
            break
    assert len(stranger.assignment()) == 2
    local, values = reading(KafkaSource(topic, broker.servers, group_id="shared"))
    until(local, lambda: len(values()) == 10)
    fill(broker, topic, *range(10, 20))
    until(local, lambda: len(values()) == 20 and "takes no offsets (others read in it" in caplog.text)
    stranger.close()
    assert sorted(values()) == list(range(20))
    assert 1 <= caplog.text.count("takes no offsets") <= 2, "once for each partition"


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


class TestWhereItBegins:
    def test_latest_is_what_comes_from_now_on_and_a_partition_that_is_added_is_read_whole(self, broker):
        topic = broker.topic(1)
        fill(broker, topic, 1, 2)
        local, values = reading(KafkaSource(topic, broker.servers, start="latest", every=0.2))
        local.run_for(0.5)
        grow(broker, topic, 2)
        fill(broker, topic, 4, partition=1)
        fill(broker, topic, 3, partition=0)
        until(local, lambda: len(values()) == 2)
        assert sorted(values()) == [3, 4]

    def test_committed_is_where_the_group_stands(self, broker):
        from confluent_kafka import Consumer, TopicPartition

        topic = broker.topic(1)
        fill(broker, topic, *range(10))
        asked = Consumer({"bootstrap.servers": broker.servers, "group.id": "g-committed"})
        asked.commit(offsets=[TopicPartition(topic, 0, 7)], asynchronous=False)
        asked.close()
        source = KafkaSource(topic, broker.servers, start="committed", group_id="g-committed", until="end")
        assert read(source) == [7, 8, 9]

    def test_a_group_without_offsets_needs_a_policy(self, broker):
        topic = broker.topic(1)
        fill(broker, topic, 1, 2)
        options = {"start": "committed", "group_id": "g-none", "until": "end"}
        with pytest.raises(Exception, match=r"'g-none' has no offset.*auto.offset.reset"):
            read(KafkaSource(topic, broker.servers, **options))
        assert read(KafkaSource(topic, broker.servers, **options, config={"auto.offset.reset": "earliest"})) == [1, 2]
        assert read(KafkaSource(topic, broker.servers, **options, config={"auto.offset.reset": "latest"})) == []

    def test_topics_by_pattern_also_those_that_are_made_later(self, broker):
        stem = broker.topic(1)
        fill(broker, stem, 1)
        local, values = reading(KafkaSource(f"^{stem}(-more)?$", broker.servers, every=0.2))
        until(local, lambda: len(values()) == 1)
        fill(broker, broker.topic(2, f"{stem}-more"), 2)
        fill(broker, broker.topic(1, f"{stem}-other"), 3)
        until(local, lambda: len(values()) == 2)
        local.run_for(0.5)
        assert sorted(values()) == [1, 2]

    def test_a_pattern_without_topics_is_said_or_refused_where_the_run_would_end(self, broker, caplog):
        local, _ = reading(KafkaSource("^nothing-begins-so", broker.servers, every=0.2))
        local.run_for(0.6)
        assert sum("no topic matches ^nothing-begins-so" in record.message for record in caplog.records) == 1
        with pytest.raises(SourceError, match="no topic matches"):
            KafkaSource("^nothing-begins-so", broker.servers, until="end").check()


class TestForgottenOffsets:
    def split_at(self, broker, topic, offset, **options):
        source = KafkaSource(topic, broker.servers, **options)
        source.open(Context("messages"))
        return source.open_split(f"{topic}[0]", (offset, None))

    @pytest.mark.parametrize(("policy", "numbers"), [("earliest", [1, 2, 3]), ("latest", [3])])
    def test_the_policy_says_where_to_go_on_and_it_is_said(self, broker, caplog, policy, numbers):
        topic = broker.topic()
        fill(broker, topic, 1, 2)
        split = self.split_at(broker, topic, 99, config={"auto.offset.reset": policy})
        found, sent, give_up = [], False, time.monotonic() + 60
        while len(found) < len(numbers) and time.monotonic() < give_up:
            if rows := split.read(10):
                found += rows.values
            if not sent and any("going on at" in record.message for record in caplog.records):
                fill(broker, topic, 3)
                sent = True
        split.close()
        assert found == numbers
        assert sum("offset 99 is not there any more" in record.message for record in caplog.records) == 1


def test_bad_messages_go_to_the_dead_letter_topic_with_their_place_and_the_error(broker):
    topic, dead = broker.topic(), broker.topic()
    fill(broker, topic, 1, b"{", 2, headers={"trace": b"7"})
    fill(broker, topic, b"[", 3)
    source = KafkaSource(topic, broker.servers, until="end", on_bad_message="dead-letter", dead_letter_topic=dead)
    assert read(source) == [1, 2, 3]
    one, two = broker.messages(dead)
    assert (one.value(), one.key(), two.value()) == (b"{", b"kb'{'", b"[")
    headers = dict(one.headers())
    assert headers["trace"] == b"7"
    assert [headers[f"__connect.errors.{name}"] for name in ("topic", "partition", "offset")] == [
        topic.encode(),
        b"0",
        b"1",
    ]
    assert headers["__connect.errors.exception.class.name"] == b"json.decoder.JSONDecodeError"
    assert b"property name" in headers["__connect.errors.exception.message"]
    assert dict(two.headers())["__connect.errors.offset"] == b"3"


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
        ({"start": "newest"}, "a time in seconds since the epoch"),
        ({"start": "committed"}, 'say group_id="..."'),
        ({"config": {"group.id": "g"}}, "say group_id='g'"),
        ({"topics": "^orders-("}, "is no pattern"),
        ({"on_bad_message": "drop"}, '"fail", "skip" or "dead-letter"'),
        ({"on_bad_message": "dead-letter"}, "go together"),
        ({"dead_letter_topic": "bad"}, "go together"),
        ({"config": {"auto.offset.reset": "sometimes"}}, '"earliest", "latest" or "error"'),
        ({"value_deserializer": "avro"}, "a format of esault.formats, or a function from bytes"),
        ({"every": 0}, "every"),
    ],
)
def test_options_that_cannot_be_are_refused_with_what_can(options, said):
    with pytest.raises(TopologyError, match=said):
        KafkaSource(**{"topics": "t", **options})


def test_a_broker_that_is_away_for_a_while_is_said_once_and_nothing_is_lost(broker, caplog):
    topic, other = broker.topic(4), broker.topic(1)
    fill(broker, topic, *range(100))
    t = Topology("through")
    t.spout("messages", KafkaSource(topic, broker.servers)).sink("out", KafkaSink(other, broker.servers))
    local = LocalRuntime(t, real=True)

    def there():
        return broker.messages(other, committed=False)  # a broker that has just begun knows of no transactions yet

    waiting.until(lambda: local.run_for(0.3) or len(there()) == 100)
    broker.stop()
    waiting.until(lambda: local.run_for(0.3) or any("waiting until one" in record.message for record in caplog.records))
    broker.start()
    waiting.until(lambda: local.run_for(0.3) or any("answers again" in record.message for record in caplog.records))
    fill(broker, topic, *range(100, 200))  # that it is back was said before a message came
    end = time.monotonic() + 60
    while len(there()) < 200 and time.monotonic() < end:
        local.run_for(0.5)
    assert {json.loads(message.value()) for message in there()} == set(range(200))
    said = [record.message for record in caplog.records if "waiting until one does" in record.message]
    assert 1 <= len(said) <= 2, "by the source and by the sink"
