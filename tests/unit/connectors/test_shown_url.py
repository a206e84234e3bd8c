"""Errors about URLs show no password, and say what hides a host."""

import pytest

from esault.connectors.shown_url import password_remedy, without_password
from esault.errors import EsaultError
from esault.sinks import PostgresSink, RabbitMQStreamSink
from esault.sources import MqttSource, NatsSource, PostgresChanges, RabbitMQSource, RedisSource

COLUMNS = {"k": str, "n": int}


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("amqp://alice:secret@host:5672/%2F", "amqp://host:5672/%2F"),
        ("alice:secret@host:5672", "host:5672"),
        ("redis://alice:se#c/r?et@host:1/0?password=secret", "redis://host:1/0"),
        ("nats://host", "nats://host"),
        (None, "None"),
    ],
)
def test_a_url_is_shown_without_user_and_password(url, shown):
    assert without_password(url) == shown


def test_a_password_that_hides_the_host_has_a_remedy():
    assert not password_remedy("amqp://alice:secret@host/%2F")
    assert "/ as %2F" in password_remedy("amqp://alice:sec/ret@host/%2F")


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: RabbitMQSource("q", "alice:secret@host"), "write .amqp://"),
        (lambda: RabbitMQSource("q", "amqp://alice:sec#ret@host").check(), "# as %23"),
        (lambda: RabbitMQStreamSink("s", "amqp://alice:secret@host:5672/%2F"), "write .rabbitmq-stream://"),
        (lambda: RabbitMQStreamSink("s", "rabbitmq-stream://alice:sec/ret@host/%2F"), "/ as %2F"),
        (lambda: NatsSource("S", "alice:secret@host"), "write nats://"),
        (lambda: NatsSource("S", "http://alice:secret@host"), "write nats://"),
        (lambda: NatsSource("S", "nats://alice:sec/ret@host"), "/ as %2F"),
        (lambda: RedisSource("s", "redis://alice:sec/ret@host").check(), "/ as %2F"),
        (lambda: MqttSource("t", "mqtt://alice:secret@host", client_id="c"), "name or address alone"),
        (lambda: PostgresSink("host=h password=my secret", "t", COLUMNS).check(), "the dsn cannot be read; write"),
        (lambda: PostgresSink("jdbc:postgresql://h/d?password=secret", "t", COLUMNS).check(), "cannot be read; write"),
        (lambda: PostgresSink("postgresql+psycopg://a:secret@h/d", "t", COLUMNS).check(), "cannot be read; write"),
        (lambda: PostgresSink("postgresql://a:sec%ret@h/d", "t", COLUMNS).check(), "cannot be read; write"),
        (lambda: PostgresSink("postgresql://a:my@secret@h/d", "t", COLUMNS).check(), "@ as %40"),
        (lambda: PostgresSink("hots=h password=secret", "t", COLUMNS).check(), "the option 'hots'"),
        (lambda: PostgresChanges("postgresql://a:se/cret@h/d", "t", slot="s").check(), "/ as %2F"),
    ],
)
def test_no_error_shows_a_password(made, said):
    with pytest.raises(EsaultError, match=said) as raised:
        made()
    for part in ("secret", "ret@", "sec", "cret"):
        assert part not in str(raised.value)
