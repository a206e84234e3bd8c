"""Rows as the messages that KafkaSink gives to its producer; tests/connectors/kafka has a real broker."""

from __future__ import annotations

import threading

import pytest

from esault.connectors.kafka import sink as kafka_sink
from esault.errors import SinkError, TopologyError
from esault.flow.send.sink_call import waited
from esault.sinks import KafkaSink
from esault.topology.context import Context
from esault.topology.sink import Row


class Taken:
    """Stands for a producer."""

    def __init__(self, *of):
        self.messages, self.flushed, self.room = [], 0, 100
        self.may_flush = threading.Event()
        self.may_flush.set()
        made.append(self)

    def put(self, topic, messages):
        self.messages += [(topic, message) for message in messages]

    def has_room(self, count):
        return len(self.messages) + count <= self.room

    def flush(self):
        self.may_flush.wait()
        self.flushed = len(self.messages)


made: list[Taken] = []


@pytest.fixture
def opened(monkeypatch):
    monkeypatch.setattr(kafka_sink, "Outbox", Taken)
    made.clear()

    def opened(*arguments, **options):
        sink = KafkaSink(*arguments, **options)
        sink.open(Context("out"))
        return sink

    return opened


class TestMessages:
    def test_nothing_connects_before_the_first_row(self, opened):
        sink = opened("t")
        waited(sink.prepare(1), None)
        sink.close()
        assert made == []

    def test_prepare_waits_for_all_rows(self, opened):
        sink = opened("t")
        waited(sink.write([Row("a", 1, 0.0), Row(None, None, 0.0)]), None)
        assert made[0].flushed == 0
        waited(sink.prepare(1), None)
        assert made[0].flushed == 2
        assert made[0].messages == [("t", {"key": b"a", "value": b"1"}), ("t", {"key": None, "value": None})]

    def test_rows_of_the_next_epoch_wait_behind_what_is_not_flushed_and_keep_their_order(self, opened):
        sink = opened("t")
        sink.write([Row("a", 1, 0.0)])
        made[0].may_flush.clear()
        prepared = sink.prepare(1)
        written = sink.write([Row("a", 2, 0.0)])
        assert not prepared.done()
        assert len(made[0].messages) == 1
        made[0].may_flush.set()
        prepared.result()
        written.result()
        assert (made[0].flushed, len(made[0].messages)) == (1, 2)
        sink.close()

    def test_a_producer_that_is_full_is_waited_for_elsewhere(self, opened):
        sink = opened("t")
        assert sink.write([Row("a", 1, 0.0)]) is None
        made[0].room = 1
        assert waited(sink.write([Row("a", 2, 0.0)]), None) is None
        assert len(made[0].messages) == 2
        sink.close()

    def test_functions_give_what_else_a_message_has(self, opened):
        sink = opened(
            lambda key, value: f"t{value}",
            headers=lambda key, value: {"k": key},
            timestamp=lambda key, value: 1.5,
            partition=lambda key, value: value,
        )
        sink.write_columns(("a", "b"), (1, 2), 0.0, None)
        said = [
            (topic, message["headers"], message["timestamp"], message["partition"])
            for topic, message in made[0].messages
        ]
        assert said == [("t1", {"k": "a"}, 1500, 1), ("t2", {"k": "b"}, 1500, 2)]

    def test_where_a_function_gives_none_the_producer_decides(self, opened):
        sink = opened("t", timestamp=lambda key, value: None, partition=lambda key, value: None)
        sink.write_columns(("a",), (1,), 0.0, None)
        assert made[0].messages == [("t", {"key": b"a", "value": b"1", "timestamp": None, "partition": None})]

    def test_what_has_no_form_names_the_topic(self, opened):
        with pytest.raises(SinkError, match="topic 't': 1.5 is neither text"):
            opened("t").write([Row(1.5, 1, 0.0)])


@pytest.mark.parametrize("options", [{"topic": ""}, {"topic": "t", "headers": {}}, {"topic": "t", "partitions": 0}])
def test_options_that_mean_nothing_are_refused(options):
    with pytest.raises(TopologyError, match="write"):
        KafkaSink(**options)
