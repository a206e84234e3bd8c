"""A real mosquitto for tests: on a port of its own, with a folder that ends with it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ports import free_port

USER, PASSWORD = "alice", "wonder"


class NotToBeHadError(Exception):
    """What the broker needs is not on this machine."""


class Broker:
    """One broker: `port` is open to all, `guarded` asks for a password."""

    def __init__(self, folder: Path) -> None:
        path = f"{os.environ.get('PATH', '')}:/usr/sbin"
        self._program = shutil.which("mosquitto", path=path)
        if self._program is None:
            raise NotToBeHadError("there is no mosquitto: apt-get install mosquitto")
        self._folder, self.port, self.guarded = folder, free_port(), free_port()
        self._process: subprocess.Popen[bytes] | None = None
        subprocess.run(["mosquitto_passwd", "-b", "-c", str(folder / "passwords"), USER, PASSWORD], check=True)
        (folder / "passwords").chmod(0o644)
        folder.chmod(0o777)
        self.settings = folder / "mosquitto.conf"
        self.settings.write_text(
            "per_listener_settings true\nmax_inflight_messages 0\nmax_queued_messages 0\n"
            f"listener {self.port} 127.0.0.1\nallow_anonymous true\npersistence true\n"
            f"persistence_location {folder}/\nautosave_interval 1\nautosave_on_changes true\n"
            f"listener {self.guarded} 127.0.0.1\nallow_anonymous false\npassword_file {folder}/passwords\n"
        )

    def start(self) -> None:
        """Start it, and wait until it answers."""
        with (self._folder / "log").open("ab") as log:
            asked = [str(self._program), "-c", str(self.settings)]
            self._process = subprocess.Popen(asked, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        for _ in range(400):
            assert self._process.poll() is None, (self._folder / "log").read_text()[-2000:]
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.guarded), timeout=1):
                return
            time.sleep(0.02)
        raise AssertionError("the broker does not answer")

    def stop(self) -> None:
        """End it in order: what it keeps is on disk."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            self._process = None

    def crash(self) -> None:
        """Kill it: what it has not written is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def send(self, topic: str, *payloads: bytes, retain: bool = False) -> None:
        """Publish with QoS 1, and wait until the broker has all."""
        import paho.mqtt.client as paho

        client = paho.Client(paho.CallbackAPIVersion.VERSION2, protocol=paho.MQTTv5)
        client.connect("127.0.0.1", self.port)
        client.loop_start()
        for said in [client.publish(topic, payload, 1, retain) for payload in payloads]:
            said.wait_for_publish(30)
        client.disconnect()
        client.loop_stop()


class Reader:
    """A session that acknowledges nothing: each time that it is asked it gets all, in any process."""

    def __init__(self, broker: Broker, topics: str) -> None:
        self.broker, self.topics, self.name = broker, topics, f"reader-{uuid.uuid4().hex}"
        self.all()

    def all(self) -> list[Any]:
        """What has been published before now: the broker gives it in order."""
        import paho.mqtt.client as paho
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties
        from paho.mqtt.subscribeoptions import SubscribeOptions

        client = paho.Client(paho.CallbackAPIVersion.VERSION2, self.name, protocol=paho.MQTTv5, manual_ack=True)
        found: list[Any] = []
        fence, over = uuid.uuid4().hex.encode(), threading.Event()

        def come(client: Any, userdata: Any, message: Any) -> None:
            if message.payload == fence:
                over.set()
            elif not message.topic.startswith("fence/"):
                found.append(message)

        kept = Properties(PacketTypes.CONNECT)
        kept.SessionExpiryInterval = 600
        once = SubscribeOptions(qos=1, retainHandling=SubscribeOptions.RETAIN_SEND_IF_NEW_SUB)
        client.on_connect = lambda *_: client.subscribe([(self.topics, once), (f"fence/{self.name}", once)])
        client.on_subscribe = lambda *_: client.publish(f"fence/{self.name}", fence, 1)
        client.on_message = come
        client.connect("127.0.0.1", self.broker.port, clean_start=False, properties=kept)
        client.loop_start()
        assert over.wait(30)
        client.disconnect()
        client.loop_stop()
        return found

    def rows(self) -> list[tuple[str, Any]]:
        return [(message.topic, json.loads(message.payload)) for message in self.all()]


@contextlib.contextmanager
def running() -> Iterator[Broker]:
    """A broker in a folder of its own. Raises NotToBeHadError."""
    with tempfile.TemporaryDirectory(prefix="mosquitto-", ignore_cleanup_errors=True) as folder:
        broker = Broker(Path(folder))
        try:
            broker.start()
            yield broker
        finally:
            broker.stop()
