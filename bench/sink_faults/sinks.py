"""The sinks, each as its page in the docs has it; `where` is JSON that says where."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from esault import Sink, sinks

__all__ = ["SINKS"]

COLUMNS = {"key": str, "value": int, "count": int}


def _postgres(at: dict[str, Any]) -> Sink:
    return sinks.PostgresSink(at["dsn"], at["table"], list(COLUMNS))


def _postgres_upsert(at: dict[str, Any]) -> Sink:
    return sinks.PostgresSink(at["dsn"], at["table"], COLUMNS, primary_key="key")


def _delta(at: dict[str, Any]) -> Sink:
    return sinks.DeltaSink(at["path"], COLUMNS, mode="append")


def _redis(at: dict[str, Any]) -> Sink:
    return sinks.RedisSink(at["stream"], at["url"])


def _nats(at: dict[str, Any]) -> Sink:
    return sinks.NatsSink(at["stream"], at["subject"], at["url"], key_header="Key", declare=True)


def _rabbitmq_stream(at: dict[str, Any]) -> Sink:
    return sinks.RabbitMQStreamSink(at["stream"], at["url"], declare=True)


def _rabbitmq_queue(at: dict[str, Any]) -> Sink:
    return sinks.RabbitMQSink(at["queue"], at["url"], declare=True, properties=_key_as_header)


def _key_as_header(key: str, value: object) -> dict[str, Any]:
    return {"headers": {"key": key}}


def _mqtt(at: dict[str, Any]) -> Sink:
    return sinks.MqttSink(_Topic(at["topic"]), "127.0.0.1", port=at["port"])


class _Topic:
    def __init__(self, base: str) -> None:
        self.base = base

    def __call__(self, key: str, value: object) -> str:
        return f"{self.base}/{key}"


def _webhook(at: dict[str, Any]) -> Sink:
    return sinks.WebhookSink(at["url"], body=_with_key)


def _with_key(key: str, value: dict[str, Any]) -> dict[str, Any]:
    return {"key": key, **value}


def _parquet(at: dict[str, Any]) -> Sink:
    return sinks.Parquet(at["path"], COLUMNS, mode="append")


def _spark_table(at: dict[str, Any]) -> Sink:
    return sinks.SparkTable(at["path"], COLUMNS, mode="append")


def _json_lines(at: dict[str, Any]) -> Sink:
    return sinks.JsonLines(at["path"], mode="append")


def _kafka(at: dict[str, Any]) -> Sink:
    return sinks.KafkaSink(at["topic"], at["servers"], partitions=2, guarantee="exactly-once")


_MADE: dict[str, Callable[[dict[str, Any]], Sink]] = {
    "postgres-append": _postgres,
    "postgres-upsert": _postgres_upsert,
    "delta": _delta,
    "redis": _redis,
    "nats": _nats,
    "rabbitmq-stream": _rabbitmq_stream,
    "rabbitmq-queue": _rabbitmq_queue,
    "mqtt": _mqtt,
    "webhook": _webhook,
    "s3-parquet": _parquet,
    "s3-spark-table": _spark_table,
    "s3-json-lines": _json_lines,
    "kafka": _kafka,
}


def _made(make: Callable[[dict[str, Any]], Sink], where: str) -> Sink:
    return make(json.loads(where))


SINKS: dict[str, Callable[[str], Sink]] = {name: partial(_made, make) for name, make in _MADE.items()}
