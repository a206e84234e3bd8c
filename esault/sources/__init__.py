"""Sources in the box: ordinary spouts. Their constructors open nothing; `check` says clearly what cannot be read.

`esault connectors` lists them, with what each promises and needs; `esault connectors TextFiles` explains one.

Those that know their position go on after a restart, and can be read by several readers. What came over standard input or TCP
cannot be read again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from esault.late_names import late_names

if TYPE_CHECKING:
    from esault.connectors.http.poll_source import HttpPollSource
    from esault.connectors.http.server_source import HttpServerSource
    from esault.connectors.http.sse_source import SseSource
    from esault.connectors.http.web_socket_source import WebSocketSource
    from esault.connectors.kafka.source import KafkaSource
    from esault.connectors.mqtt.source import MqttSource
    from esault.connectors.nats.source import NatsSource
    from esault.connectors.postgres.changes import PostgresChanges
    from esault.connectors.rabbitmq.source import RabbitMQSource
    from esault.connectors.rabbitmq.stream_source import RabbitMQStreamSource
    from esault.connectors.redis.source import RedisSource
    from esault.sources.arrow_files import ArrowFiles
    from esault.sources.cron import Cron
    from esault.sources.csv_files import CsvFiles
    from esault.sources.dead_letters import DeadLetters
    from esault.sources.directory import Directory
    from esault.sources.items import Items
    from esault.sources.json_files import JsonFiles
    from esault.sources.lines import Lines
    from esault.sources.micro_batches import MicroBatches
    from esault.sources.paced import Paced
    from esault.sources.parquet_files import ParquetFiles
    from esault.sources.table import Table
    from esault.sources.tcp_lines import TcpLines
    from esault.sources.text_files import TextFiles
    from esault.sources.ticker import Ticker

__all__ = [
    "ArrowFiles",
    "Cron",
    "CsvFiles",
    "DeadLetters",
    "Directory",
    "HttpPollSource",
    "HttpServerSource",
    "Items",
    "JsonFiles",
    "KafkaSource",
    "Lines",
    "MicroBatches",
    "MqttSource",
    "NatsSource",
    "Paced",
    "ParquetFiles",
    "PostgresChanges",
    "RabbitMQSource",
    "RabbitMQStreamSource",
    "RedisSource",
    "SseSource",
    "Table",
    "TcpLines",
    "TextFiles",
    "Ticker",
    "WebSocketSource",
]

#: where they are: each is loaded when it is asked for, since a program needs few of them, and each start would pay for all
_ELSEWHERE = {
    "ArrowFiles": "esault.sources.arrow_files",
    "Cron": "esault.sources.cron",
    "CsvFiles": "esault.sources.csv_files",
    "DeadLetters": "esault.sources.dead_letters",
    "Directory": "esault.sources.directory",
    "Items": "esault.sources.items",
    "JsonFiles": "esault.sources.json_files",
    "Lines": "esault.sources.lines",
    "MicroBatches": "esault.sources.micro_batches",
    "Paced": "esault.sources.paced",
    "ParquetFiles": "esault.sources.parquet_files",
    "Table": "esault.sources.table",
    "TcpLines": "esault.sources.tcp_lines",
    "TextFiles": "esault.sources.text_files",
    "Ticker": "esault.sources.ticker",
    "PostgresChanges": "esault.connectors.postgres.changes",
    "HttpPollSource": "esault.connectors.http.poll_source",
    "WebSocketSource": "esault.connectors.http.web_socket_source",
    "SseSource": "esault.connectors.http.sse_source",
    "HttpServerSource": "esault.connectors.http.server_source",
    "KafkaSource": "esault.connectors.kafka.source",
    "MqttSource": "esault.connectors.mqtt.source",
    "NatsSource": "esault.connectors.nats.source",
    "RabbitMQSource": "esault.connectors.rabbitmq.source",
    "RabbitMQStreamSource": "esault.connectors.rabbitmq.stream_source",
    "RedisSource": "esault.connectors.redis.source",
}

__getattr__, __dir__ = late_names(globals(), _ELSEWHERE)
