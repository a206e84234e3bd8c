"""Sinks in the box. Their constructors open nothing; `check` says clearly what cannot be written.

`esault connectors` lists them, with what each promises and needs; `esault connectors JsonLines` explains one.
    SparkTable(path, columns)   a table for Spark, exactly once per row (needs esault[parquet])
      with primary_key=...      an upsert table: one row for each key, the newest
    Parquet(path, columns)      Parquet files for any reader (needs esault[parquet])
    DeltaSink(path, columns)    a Delta Lake table (needs esault[delta])
    PostgresSink(dsn, table, columns)  rows of a table (needs esault[postgres])
    KafkaSink(topic, servers)   messages of a topic (needs esault[kafka])
    WebhookSink(url)            a POST for each row (needs esault[http])
    SseSink(port)               server-sent events for those who listen (needs esault[http])
    WebSocketSink(port)         messages for those who are connected (needs esault[http])
    RabbitMQSink(queue, url)    messages of a queue or an exchange (needs esault[rabbitmq])
    RabbitMQStreamSink(stream, url)  messages of streams of RabbitMQ
    MqttSink(topic, host)       messages of topics by MQTT 5 (needs esault[mqtt])
    NatsSink(stream, subject)   messages of a stream of NATS JetStream (needs esault[nats])
    RedisSink(stream, url)      entries of a stream of Redis (needs esault[redis])
    JsonLines(path)             one JSON object per row, in one file
    CsvFile(path, columns)      one line of CSV per row, in one file
    Collect()                   rows kept for the caller
    Print()                     rows in the terminal

Rows appear when they are committed: every 50 ms or 10 000 rows, or with each checkpoint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from esault.late_names import late_names

if TYPE_CHECKING:
    from esault.connectors.http.sse_sink import SseSink
    from esault.connectors.http.web_socket_sink import WebSocketSink
    from esault.connectors.http.webhook_sink import WebhookSink
    from esault.connectors.kafka.sink import KafkaSink
    from esault.connectors.mqtt.sink import MqttSink
    from esault.connectors.nats.sink import NatsSink
    from esault.connectors.postgres.sink import PostgresSink
    from esault.connectors.rabbitmq.sink import RabbitMQSink
    from esault.connectors.rabbitmq.stream_sink import RabbitMQStreamSink
    from esault.connectors.redis.sink import RedisSink
    from esault.sinks.collect import Collect, read_collected
    from esault.sinks.csv_file import CsvFile
    from esault.sinks.delta.sink import DeltaSink
    from esault.sinks.json_lines import JsonLines
    from esault.sinks.parquet import Parquet
    from esault.sinks.print import Print
    from esault.sinks.spark_table import SparkTable

__all__ = [
    "Collect",
    "CsvFile",
    "DeltaSink",
    "JsonLines",
    "KafkaSink",
    "MqttSink",
    "NatsSink",
    "Parquet",
    "PostgresSink",
    "Print",
    "RabbitMQSink",
    "RabbitMQStreamSink",
    "RedisSink",
    "SparkTable",
    "SseSink",
    "WebSocketSink",
    "WebhookSink",
    "read_collected",
]

#: where they are: each is loaded when it is asked for, since a program needs few of them, and each start would pay for all
_ELSEWHERE = {
    "Collect": "esault.sinks.collect",
    "read_collected": "esault.sinks.collect",
    "CsvFile": "esault.sinks.csv_file",
    "JsonLines": "esault.sinks.json_lines",
    "Parquet": "esault.sinks.parquet",
    "Print": "esault.sinks.print",
    "SparkTable": "esault.sinks.spark_table",
    "PostgresSink": "esault.connectors.postgres.sink",
    "SseSink": "esault.connectors.http.sse_sink",
    "WebSocketSink": "esault.connectors.http.web_socket_sink",
    "WebhookSink": "esault.connectors.http.webhook_sink",
    "DeltaSink": "esault.sinks.delta.sink",
    "KafkaSink": "esault.connectors.kafka.sink",
    "MqttSink": "esault.connectors.mqtt.sink",
    "NatsSink": "esault.connectors.nats.sink",
    "RabbitMQSink": "esault.connectors.rabbitmq.sink",
    "RabbitMQStreamSink": "esault.connectors.rabbitmq.stream_sink",
    "RedisSink": "esault.connectors.redis.sink",
}

__getattr__, __dir__ = late_names(globals(), _ELSEWHERE)
