"""A topic of a real broker is looked at while nothing runs."""

from __future__ import annotations

from watched_input import check_watched_input


def fill(broker, topic, *values):
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": broker.servers})
    for value in values:
        producer.produce(topic, b"%d" % value)
    assert producer.flush(30) == 0


def test_a_message_is_seen_behind_those_that_were_read_and_is_still_there_for_the_run(broker, tmp_path):
    topic = broker.topic(3)
    fill(broker, topic, 1, 2, 3)
    source = f"KafkaSource({topic!r}, {broker.servers!r})"
    check_watched_input(tmp_path, source, 3, lambda: fill(broker, topic, 4))
