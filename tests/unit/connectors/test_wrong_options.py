"""Options of connectors that are of another type than they may be: they are refused by name, with what to write."""

from __future__ import annotations

import pytest

from esault.errors import SinkError, TopologyError
from esault.lookups import PostgresLookup, RedisLookup
from esault.sinks import DeltaSink, NatsSink, PostgresSink, RabbitMQStreamSink, SparkTable, SseSink
from esault.sources import (
    CsvFiles,
    HttpPollSource,
    KafkaSource,
    MqttSource,
    NatsSource,
    PostgresChanges,
    RabbitMQStreamSource,
    RedisSource,
    TextFiles,
    WebSocketSource,
)

DSN, URL, WORDS = "host=localhost", "http://localhost/", {"word": str, "n": int}


@pytest.mark.parametrize(
    ("cls", "options", "said"),
    [
        (KafkaSource, {"topics": None}, "topics=None: write a topic's name"),
        (KafkaSource, {"topics": "t", "config": "x"}, "config='x': write a dict"),
        (RedisSource, {"streams": None}, "streams=None: write a stream's name"),
        (NatsSource, {"streams": None}, "streams=None: write the name of a stream"),
        (NatsSource, {"streams": "s", "servers": 7}, "servers=7: write nats://"),
        (NatsSource, {"streams": "s", "options": 7}, "options=7: write a dict"),
        (NatsSource, {"streams": "s", "start_time": float("nan")}, "start_time=nan: write seconds since the epoch"),
        (NatsSink, {"stream": "s", "subject": "s", "servers": [None]}, "servers=None: write nats://"),
        (RabbitMQStreamSource, {"streams": None}, "streams=None: write a stream's name"),
        (RabbitMQStreamSource, {"streams": "s", "start_time": 1e12}, "start_time=1000000000000.0: write seconds"),
        (RabbitMQStreamSink, {"stream": None}, "stream=None: write a stream's name"),
        (MqttSource, {"topics": None, "client_id": "c"}, "topics=None: write a topic filter"),
        (PostgresChanges, {"dsn": DSN, "tables": None, "slot": "s"}, "tables=None: write the names of tables"),
        (PostgresSink, {"dsn": DSN, "table": "t", "columns": None}, "columns=None: write their names"),
        (PostgresSink, {"dsn": DSN, "table": "t", "columns": ["a"], "primary_key": 7}, "7 is none of the columns"),
        (PostgresLookup, {"dsn": DSN, "table": "t", "key": None}, "key=None, columns=None: write names of columns"),
        (RedisLookup, {"key": "a:{}", "fields": 7}, "fields=7: write names of fields"),
        (HttpPollSource, {"url": URL, "params": "a=b"}, "params='a=b': write a dict"),
        (WebSocketSource, {"url": "ws://localhost/", "send": 7}, "send=7: write a list of messages"),
        (SseSink, {"port": 8080, "origins": 7}, "origins=7: write a list"),
        (SparkTable, {"path": "t", "columns": WORDS, "primary_key": 7}, "primary_key names 7, which is no column"),
        (DeltaSink, {"path": "t", "columns": WORDS, "partition_by": 7}, "partition_by names 7, which is no column"),
        (TextFiles, {"path": "a", "pattern": None}, "pattern=None: write which files of a folder are read"),
        (TextFiles, {"path": "a", "encoding": "a\0"}, "is no text encoding that Python knows"),
        (CsvFiles, {"path": "a", "encoding": None}, "encoding=None is no text encoding that Python knows"),
        (CsvFiles, {"path": "a", "types": 7}, "types=7: write a dict"),
    ],
)
def test_what_cannot_be_is_refused_by_name(cls, options, said):
    with pytest.raises((TopologyError, SinkError), match=f"^{cls.__name__}.*{said}"):
        cls(**options)
