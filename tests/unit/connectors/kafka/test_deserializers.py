"""Deserializers of Kafka's keys and values, as users name them."""

from __future__ import annotations

import pytest

from esault.connectors.kafka.source import deserializer
from esault.errors import TopologyError


class Format:
    """As those of `esault.formats`: it counts what it is asked for."""

    def __init__(self):
        self.asked = []

    def deserializer(self, topic, field):
        self.asked.append((topic, field))
        return lambda data: (topic, field, data)

    def check(self, who, kind):
        self.asked.append("check")

    def close(self):
        self.asked.append("close")


@pytest.mark.parametrize(
    ("name", "data", "value"),
    [("json", b'{"a": 1}', {"a": 1}), ("text", "ü".encode(), "ü"), ("bytes", b"\xff", b"\xff"), (len, b"abc", 3)],
)
def test_what_is_named_is_found_for_each_topic(name, data, value):
    made = deserializer("value", name)
    made.check()
    assert made.of("t", "key")(data) == made.of("u", "value")(data) == value
    made.close()


def test_a_format_is_asked_for_topic_and_field_and_let_go_of():
    form = Format()
    made = deserializer("value", form)
    made.check()
    assert made.of("t", "value")(b"x") == ("t", "value", b"x")
    made.close()
    assert form.asked == ["check", "close", ("t", "value"), "close"]


@pytest.mark.parametrize("name", ["JSON", "", None, 7, "avro"])
def test_others_are_refused_by_the_name_of_the_option(name):
    with pytest.raises(TopologyError, match=r"KafkaSource.*key"):
        deserializer("key", name)
