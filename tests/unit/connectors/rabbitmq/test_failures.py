"""What is said of an error of the server: the remedy is that of what has happened."""

import pytest

pytest.importorskip("pika", reason="pika is not installed: pip install 'esault[rabbitmq]'")

import pika
import pika.exceptions

from esault.connectors.rabbitmq.client import failure
from esault.errors import SinkError


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("PRECONDITION_FAILED - message size 150 is larger than configured max size 100", "raise max_message_size"),
        ("PRECONDITION_FAILED - inequivalent arg 'durable' for queue 'q'", "it is there with other properties"),
    ],
)
def test_a_message_that_is_too_large_is_no_queue_with_other_properties(text, remedy):
    asked = pika.URLParameters("amqp://localhost:5672/%2F")
    said = str(failure(SinkError, "RabbitMQSink, queue 'q'", asked, pika.exceptions.ChannelClosedByBroker(406, text)))
    assert text in said
    assert remedy in said
    assert said.count(";") == 1
