"""Messages that RabbitMQSink makes of rows, and rows of which it can make none."""

from __future__ import annotations

import pytest

from esault import SinkError

pytest.importorskip("pika", reason="pika is not installed: pip install 'esault[rabbitmq]'")
from esault.sinks import RabbitMQSink
from esault.topology.context import Context
from esault.topology.sink import Row


def messages(*rows, **options):
    options = options or {"queue": "q"}
    sink = RabbitMQSink(**options)
    sink.open(Context("out", run="r", lineage="r"))
    sink.write([Row(key, value, 0.0, id) for key, value, id in rows])
    return sink.prepare(1)[1]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"properties": lambda k, v: {"nope": 1}}, "properties of key 'é' cannot be sent: TypeError: .*'nope'"),
        (
            {"properties": lambda k, v: {"headers": {"a": 1.5}}},
            "cannot be sent: pika has no form for 1.5, of type float",
        ),
        ({"properties": lambda k, v: {"type": "x" * 256}}, "properties of key 'é' cannot be sent: ShortStringTooLong"),
        ({"exchange": "e", "routing_key": lambda k, v: None}, "None, made of key 'é', is no routing key"),
        ({"exchange": "e", "routing_key": lambda k, v: k * 128}, "made of key 'é', is no routing key: .* 255 bytes"),
    ],
)
def test_what_cannot_be_sent_is_refused_before_the_checkpoint(options, said):
    with pytest.raises(SinkError, match=f"^RabbitMQSink, .*{said}"):
        messages(("é", 1, "1"), **({} if "exchange" in options else {"queue": "q"}), **options)


def test_a_function_may_give_no_properties():
    ((_, _, body, named),) = messages(("a", 1, "1"), queue="q", properties=lambda key, value: None)
    assert (body, named["message_id"]) == (b"1", "r-out-1")


def test_a_name_of_a_row_that_is_too_long_for_a_property_has_a_short_one_in_its_place():
    long, other, short = "k" * 300, "k" * 299 + "l", "k"
    ids = [each[3]["message_id"] for each in messages(("a", 1, long), ("a", 1, other), ("a", 1, long), ("a", 1, short))]
    assert ids[0] == ids[2] != ids[1] and max(map(len, ids)) <= 255
    assert ids[3] == "r-out-k"
