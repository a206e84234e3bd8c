"""Rows as the messages that KafkaSink gives to its producer; tests/kafka has a real broker."""

from __future__ import annotations

import pytest

from esault.errors import SinkError, TopologyError
from esault.sinks import KafkaSink, kafka_sink
from esault.topology.context import Context
from esault.topology.sink import Row


class Taken:
    """Stands for a producer."""

    def __init__(self, *of):
        self.messages, self.flushed = [], 0
        made.append(self)

    def put(self, topic, messages):
        self.messages += [(topic, message) for message in messages]

    def flush(self):
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
        sink.prepare(1)
        sink.close()
        assert made == []

    def test_prepare_waits_for_all_rows(self, opened):
        sink = opened("t")
        sink.write([Row("a", 1, 0.0), Row(None, None, 0.0)])
        assert made[0].flushed == 0
        sink.prepare(1)
        assert made[0].flushed == 2
        assert made[0].messages == [("t", {"key": b"a", "value": b"1"}), ("t", {"key": None, "value": None})]

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

    def test_what_has_no_form_names_the_topic(self, opened):
        with pytest.raises(SinkError, match="topic 't': 1.5 is neither text"):
            opened("t").write([Row(1.5, 1, 0.0)])


@pytest.mark.parametrize("options", [{"topic": ""}, {"topic": "t", "headers": {}}, {"topic": "t", "partitions": 0}])
def test_options_that_mean_nothing_are_refused(options):
    with pytest.raises(TopologyError, match="write"):
        KafkaSink(**options)
