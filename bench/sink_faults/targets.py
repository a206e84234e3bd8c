"""Real servers with a place for a sink, and what stands there in the end, in the order in which a reader gets it."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["TARGETS", "Landed", "Target"]

ROOT = Path(__file__).parents[2]


class Landed(NamedTuple):
    """One row; `id`: what tells a repeat, where the sink gives it."""

    key: str
    value: int
    counted: int
    id: str | None = None


@dataclass
class Target:
    """A place for rows. `ordered`: a reader gets them in an order; `once`: each is there once; `newest`: the newest of each key alone."""

    where: dict[str, Any]
    read: Callable[[], list[Landed]]
    ordered: bool = True
    once: bool = True
    newest: bool = False
    #: that stop and start it as a crash does; None: it is not ended
    crash: tuple[Callable[[], None], Callable[[], None]] | None = None


def _row(body: bytes | str, key: str | None = None, id: str | None = None) -> Landed:
    row = json.loads(body)
    return Landed(key if key is not None else row["key"], row["value"], row["count"], id)


def _server(stack: ExitStack, module: str, **settings: Any) -> Any:
    """A server as the tests start it."""
    if str(ROOT / "tests" / "shared") not in sys.path:
        sys.path.insert(0, str(ROOT / "tests" / "shared"))
    found = __import__(module)
    try:
        return stack.enter_context(found.running(**settings))
    except found.NotToBeHadError as error:
        raise SystemExit(f"there is no server: {error}") from None


@contextlib.contextmanager
def _postgres(primary_key: bool) -> Iterator[Target]:
    with ExitStack() as stack:
        server = _server(stack, "postgres_server")
        columns = 'key text, value bigint, "count" bigint'
        unique = ", unique (key)" if primary_key else ""
        server.ask(f"create table landed (at bigserial, {columns}{unique})")

        def read() -> list[Landed]:
            return [Landed(*row) for row in server.ask('select key, value, "count" from landed order by at')]

        where = {"dsn": server.dsn, "table": "landed"}
        yield Target(where, read, ordered=False, newest=primary_key, crash=(lambda: server.stop(9), server.start))


@contextlib.contextmanager
def _delta(folder: Path) -> Iterator[Target]:
    def read() -> list[Landed]:
        import esault

        return [Landed(row["key"], row["value"], row["count"]) for row in esault.read(folder / "delta").to_pylist()]

    yield Target({"path": str(folder / "delta")}, read, ordered=False)


@contextlib.contextmanager
def _redis() -> Iterator[Target]:
    with ExitStack() as stack:
        server = _server(stack, "redis_server")

        def read() -> list[Landed]:
            return [_row(entry["value"], entry["key"]) for entry in server.entries("landed")]

        yield Target({"stream": "landed", "url": server.url}, read, crash=(server.stop, server.start))


@contextlib.contextmanager
def _nats() -> Iterator[Target]:
    with ExitStack() as stack:
        server = _server(stack, "nats_server")

        def read() -> list[Landed]:
            return [_row(message.data, message.headers["Key"]) for message in server.messages("LANDED")]

        where = {"stream": "LANDED", "subject": "landed", "url": server.url}
        yield Target(where, read, crash=(server.stop, server.start))


@contextlib.contextmanager
def _rabbitmq(stream: bool) -> Iterator[Target]:
    with ExitStack() as stack:
        server = _server(stack, "rabbitmq_server")
        crash = (server.stop, server.start)
        if not stream:

            def read_queue() -> list[Landed]:
                found = server.messages("landed")
                return [_row(body, properties.headers["key"], properties.message_id) for properties, body in found]

            yield Target({"queue": "landed", "url": server.url}, read_queue, once=False, crash=crash)
            return

        def read_stream() -> list[Landed]:
            from esault.sources import RabbitMQStreamSource
            from esault.topology.context import Context
            from esault.topology.spout import EndOfStream

            source = RabbitMQStreamSource("landed", server.url, until="end", deserializer="bytes")
            source.open(Context("read"))
            reader = source.open_split("landed", None)
            rows: list[Landed] = []
            with contextlib.suppress(EndOfStream):
                while True:
                    pairs: Any = reader.read(1000)
                    rows += [_row(body, key) for key, body in pairs]
            reader.close()
            source.close()
            return rows

        url = server.url.replace("amqp:", "rabbitmq-stream:").replace(f":{server.port}/", f":{server.stream_port}/")
        yield Target({"stream": "landed", "url": url}, read_stream, crash=crash)


@contextlib.contextmanager
def _mqtt() -> Iterator[Target]:
    with ExitStack() as stack:
        broker = _server(stack, "mosquitto_server")
        # that of the tests writes all that waits to its disk with each message
        broker.stop()
        settings = broker.settings.read_text()
        broker.settings.write_text(settings.replace("autosave_on_changes true", "autosave_on_changes false"))
        broker.start()
        reader = __import__("mosquitto_server").Reader(broker, "landed/#")

        def read() -> list[Landed]:
            return [
                _row(each.payload, each.topic.partition("/")[2], dict(each.properties.UserProperty)["id"])
                for each in reader.all()
            ]

        where = {"topic": "landed", "port": broker.port}
        yield Target(where, read, once=False, crash=(broker.stop, broker.start))


@contextlib.contextmanager
def _webhook() -> Iterator[Target]:
    with ExitStack() as stack:
        sys.path.insert(0, str(ROOT / "tests" / "shared"))
        receiver = stack.enter_context(__import__("http_receiver").receiving())

        def read() -> list[Landed]:
            return [Landed(got.body["key"], got.body["value"], got.body["count"], got.key) for got in receiver.got]

        yield Target({"url": receiver.url}, read, once=False)


@contextlib.contextmanager
def _object_store(kind: str) -> Iterator[Target]:
    with ExitStack() as stack:
        server = _server(stack, "s3_server")
        os.environ.update(server.environment)
        server.client.create_bucket(Bucket="landed")
        url = "s3://landed/rows"

        def read() -> list[Landed]:
            if kind == "lines":
                keys = [key for key in server.keys("landed", "rows/") if "/." not in key]
                lines = [line for key in keys for line in server.body("landed", key).splitlines()]
                return [_row(json.dumps(row["value"]), row["key"]) for row in map(json.loads, lines)]
            import io

            import pyarrow.parquet as pq

            from esault.sinks.landing import parts

            found = []
            for part in parts(url, storage_options={"endpoint_url": server.url}):
                body = server.body("landed", str(part).partition("s3://landed/")[2])
                rows = pq.read_table(io.BytesIO(body)).to_pylist()
                found += [Landed(row["key"], row["value"], row["count"], row.get("_id")) for row in rows]
            return found

        yield Target({"path": url}, read, ordered=False, once=kind != "spark")


@contextlib.contextmanager
def _kafka() -> Iterator[Target]:
    with ExitStack() as stack:
        broker = _server(stack, "kafka_broker")
        name = f"landed-{uuid.uuid4().hex[:8]}"

        def read() -> list[Landed]:
            return [_row(message.value(), message.key().decode()) for message in broker.messages(name)]

        where = {"topic": name, "servers": broker.servers}
        yield Target(where, read, crash=(broker.stop, broker.start))


#: by the sink's name: what makes the place, in a folder
TARGETS: dict[str, Callable[[Path], contextlib.AbstractContextManager[Target]]] = {
    "postgres-append": lambda folder: _postgres(False),
    "postgres-upsert": lambda folder: _postgres(True),
    "delta": _delta,
    "redis": lambda folder: _redis(),
    "nats": lambda folder: _nats(),
    "rabbitmq-stream": lambda folder: _rabbitmq(True),
    "rabbitmq-queue": lambda folder: _rabbitmq(False),
    "mqtt": lambda folder: _mqtt(),
    "webhook": lambda folder: _webhook(),
    "s3-parquet": lambda folder: _object_store("parquet"),
    "s3-spark-table": lambda folder: _object_store("spark"),
    "s3-json-lines": lambda folder: _object_store("lines"),
    "kafka": lambda folder: _kafka(),
}
