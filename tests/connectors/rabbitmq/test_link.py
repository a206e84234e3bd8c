"""A connection to RabbitMQ that breaks at odd moments, and what is said of a server that is away; no server is needed."""

from __future__ import annotations

import pytest
from ports import free_port

from esault import SourceError
from esault.connectors.rabbitmq.client import ask
from esault.connectors.rabbitmq.link import Link
from esault.flow.operators.user_error import is_transient

pika = pytest.importorskip("pika")


class Connection:
    """One that stands, or does not, and counts the channels that it is asked for."""

    def __init__(self, is_open):
        self.is_open, self.channels = is_open, 0

    def channel(self, on_open_callback):
        if not self.is_open:
            raise pika.exceptions.ConnectionWrongStateError("it is being opened, or closed")
        self.channels += 1


@pytest.fixture
def link():
    made = Link(
        "test",
        "amqp://localhost:1",
        SourceError,
        lambda line: None,
        ready=lambda _: None,
        lost=lambda: None,
        failed=lambda _: None,
    )
    made.planned = []  # type: ignore[attr-defined]
    made.later = lambda seconds, function: made.planned.append(function)  # type: ignore[attr-defined]
    yield made
    made._loop.close()


@pytest.mark.parametrize("is_open", [True, False])
def test_a_channel_that_the_server_closed_is_opened_once_where_the_connection_breaks_as_well(link, is_open):
    first, second = Connection(True), Connection(is_open)
    link._connection, link._channel = first, object()
    link._channel_closed(link._channel, pika.exceptions.ChannelClosedByBroker(541, "INTERNAL_ERROR"))
    first.is_open = False
    link._broken(first, pika.exceptions.StreamLostError("gone"))
    link._connection = second  # as its own plan to connect has it
    (again, _) = link.planned
    again()
    assert (first.channels, second.channels) == (0, 0), "the new connection opens a channel of its own"


def test_a_channel_that_the_server_closed_is_opened_again(link):
    link._connection, link._channel = Connection(True), object()
    link._channel_closed(link._channel, pika.exceptions.ChannelClosedByBroker(541, "INTERNAL_ERROR"))
    (again,) = link.planned
    again()
    assert link._connection.channels == 1


def test_an_answer_that_does_not_come_may_pass():
    with pytest.raises(SourceError, match="does not answer") as error:
        ask("test", SourceError, f"amqp://127.0.0.1:{free_port()}", lambda channel: None)
    assert is_transient(error.value)
