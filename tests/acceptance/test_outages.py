"""Servers that are away for 30 s while a run reads from them and writes to them: said, waited for, nothing lost or doubled.

That of Kafka is in `test_kafka.py`, those of Redis, NATS and web services in `test_outages_of_services.py`.
"""

from __future__ import annotations

import contextlib
import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import depth
import mosquitto_server
import postgres_server
import psutil
import pytest
import rabbitmq_server
import s3_server
import through_outages
from outages import OPTIONS, ROWS, Flow, outlast
from tcp_proxy import Proxy

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(depth.PROFILE != "deep", reason="takes a minute each: make test-deep"),
]


@contextlib.contextmanager
def postgres(how: str) -> Iterator[Flow]:
    with postgres_server.running() as server, contextlib.ExitStack() as frozen:
        server.ask("create table here (n int primary key)")

        def before(command: Any) -> dict[str, Any]:
            """Have the slot made, so that rows come as changes and the run has an end."""
            command.start(f"{PLACE}:postgres", *OPTIONS, dsn=server.dsn)
            command.until(lambda: server.ask("select 1 from pg_replication_slots where slot_name = 'outage'"))
            command.until(lambda: command.status().get("checkpoint", 0) > 0)
            assert command.stop()[0] == 0
            server.ask(f"insert into here select n from generate_series(0, {ROWS - 1}) n")
            return {"resume": True, "until": "now"}

        def there() -> list[int]:
            return [n for (n,) in server.ask("select n from there")]

        if how == "frozen":
            stand = lambda: frozen.enter_context(server.frozen())
            # what the source had read ahead may be all that there is: then it waits for nothing
            yield Flow({"dsn": server.dsn}, stand, frozen.close, there, said=1, before=before)
        else:
            yield Flow({"dsn": server.dsn}, lambda: server.stop(signal.SIGQUIT), server.start, there, before=before)


@contextlib.contextmanager
def queue() -> Iterator[Flow]:
    import pika

    with rabbitmq_server.running() as server:
        here, there = server.queue(), server.queue()
        with server.channel() as channel:
            channel.tx_select()
            for n in range(ROWS):
                named = pika.BasicProperties(delivery_mode=2, message_id=str(n))
                channel.basic_publish("", here, json.dumps({"n": n}).encode(), named)
            channel.tx_commit()

        server.sync()

        def read() -> list[int]:
            """As one does who drops repeats by their id."""
            found = {properties.message_id: body for properties, body in server.messages(there)}
            return [json.loads(body)["n"] for body in found.values()]

        yield Flow({"url": server.url, "here": here, "there": there}, server.kill, server.start, read)


@contextlib.contextmanager
def stream() -> Iterator[Flow]:
    import pika

    with rabbitmq_server.running() as server:
        rows = [json.dumps({"n": n}).encode() for n in range(ROWS)]
        here = server.stream(*rows[: ROWS // 2])
        there = server.stream()
        server.sync()
        user, password = rabbitmq_server.USER, rabbitmq_server.PASSWORD
        streams = f"rabbitmq-stream://{user}:{password}@127.0.0.1:{server.stream_port}/%2F"

        def read() -> list[int]:
            return [json.loads(body)["n"] for body in server.in_stream(there)]

        params = {"url": server.url, "here": here, "there": there, "streams": streams}

        def back() -> None:
            server.start()
            with server.channel() as channel:
                channel.confirm_delivery()
                for row in rows[ROWS // 2 :]:
                    while True:  # until the stream has a leader again the server drops what comes, and confirms it
                        with contextlib.suppress(pika.exceptions.UnroutableError):
                            channel.basic_publish("", here, row, mandatory=True)
                            break
                        time.sleep(0.1)

        yield Flow(params, server.kill, back, read, ends=False)


@contextlib.contextmanager
def mqtt() -> Iterator[Flow]:
    with mosquitto_server.running() as broker:
        reader = mosquitto_server.Reader(broker, "there")

        def read() -> list[int]:
            """As one does who drops repeats by their id."""
            found = {dict(message.properties.UserProperty)["id"]: message.payload for message in reader.all()}
            return [json.loads(payload)["n"] for payload in found.values()]

        def before(command: Any) -> dict[str, Any]:
            """Have the session made: what comes before it is nobody's."""
            command.start(f"{PLACE}:mqtt", *OPTIONS, port=broker.port)
            command.running()
            command.until(lambda: command.status().get("checkpoint", 0) > 0)
            assert command.stop()[0] == 0
            broker.send("here/1", *(json.dumps({"n": n}).encode() for n in range(ROWS)))
            return {"resume": True}

        yield Flow({"port": broker.port}, broker.stop, broker.start, read, again=True, ends=False, before=before)


@contextlib.contextmanager
def objects(how: str) -> Iterator[Flow]:
    with s3_server.running() as server:
        door = Proxy(server.port)
        door.open()
        server.client.create_bucket(Bucket="bucket")
        for part in range(4):
            lines = "".join(json.dumps({"n": n}) + "\n" for n in range(part, ROWS, 4))
            server.put("bucket", f"here/{part}.jsonl", lines)

        def read() -> list[int]:
            bodies = [server.body("bucket", key) for key in server.keys("bucket", "there/2")]
            return [json.loads(line)["value"]["n"] for body in bodies for line in body.splitlines()]

        params = {"endpoint": f"http://127.0.0.1:{door.port}"}
        if how == "frozen":
            process = psutil.Process(server._process.pid)
            yield Flow(params, process.suspend, process.resume, read)
        else:
            yield Flow(params, door.shut, door.open, read)
        door.shut()


PLACE = str(Path(through_outages.__file__))
SERVERS = {
    "postgres, stopped": ("postgres", lambda: postgres("stopped"), "psycopg"),
    "postgres, frozen": ("postgres", lambda: postgres("frozen"), "psycopg"),
    "rabbitmq, queue": ("queue", queue, "pika"),
    "rabbitmq, stream": ("stream", stream, "pika"),
    "mqtt": ("mqtt", mqtt, "paho.mqtt.client"),
    "objects, refused": ("objects", lambda: objects("refused"), "s3fs"),
    "objects, frozen": ("objects", lambda: objects("frozen"), "s3fs"),
}


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_that_is_away_for_thirty_seconds_loses_and_doubles_nothing(command, tmp_path, monkeypatch, name):
    function, served, module = SERVERS[name]
    pytest.importorskip(module)
    for variable, value in s3_server.KEYS.items():
        monkeypatch.setenv(variable, value)
    outlast(command, tmp_path, f"{PLACE}:{function}", served())
