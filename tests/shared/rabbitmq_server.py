"""A real RabbitMQ for tests, with streams: on ports of its own, with an epmd of its own, on a folder that ends with it."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ports import free_port

#: user and password of the one user that there is
USER, PASSWORD = "alice", "wonder"
_ROOT = Path("/usr/lib/rabbitmq/lib")


class NotToBeHadError(Exception):
    """What the server needs is not on this machine."""


def _program() -> Path:
    found = sorted(_ROOT.glob("rabbitmq_server-*/sbin/rabbitmq-server"))
    if not found or not shutil.which("epmd") or not _caller():
        raise NotToBeHadError("there is no rabbitmq-server: apt-get install rabbitmq-server")
    return found[-1]


def _caller() -> str:
    """Return the program of Erlang's that calls functions in a running one; "" if there is none."""
    inside = sorted(map(str, Path("/usr").glob("lib*/erlang/lib/erl_interface-*/bin/erl_call")))
    return shutil.which("erl_call") or (inside or [""])[-1]


class Server:
    """One server. `url` is that of AMQP, `stream_port` that of streams."""

    def __init__(self, folder: Path) -> None:
        self._program, self._folder = _program(), folder
        self.port, self.stream_port = free_port(), free_port()
        self._names, distribution = free_port(), free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._epmd: subprocess.Popen[bytes] | None = None
        (folder / "enabled_plugins").write_text("[rabbitmq_stream].\n")
        (folder / "rabbitmq.conf").write_text(
            f"listeners.tcp.1 = 127.0.0.1:{self.port}\n"
            f"stream.listeners.tcp.1 = 127.0.0.1:{self.stream_port}\n"
            f"stream.advertised_host = 127.0.0.1\nstream.advertised_port = {self.stream_port}\n"
            f"default_user = {USER}\ndefault_pass = {PASSWORD}\ndisk_free_limit.absolute = 50MB\n"
            "num_acceptors.tcp = 2\nlog.file.level = warning\n"
        )
        self._node = f"t{uuid.uuid4().hex[:8]}@localhost"
        self._environment = {
            **os.environ,
            "HOME": str(folder),
            "RABBITMQ_NODENAME": self._node,
            "RABBITMQ_DIST_PORT": str(distribution),
            "RABBITMQ_MNESIA_BASE": str(folder / "data"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_PID_FILE": str(folder / "pid"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+sbwt none +sbwtdcpu none +sbwtdio none -kernel inet_dist_use_interface {127,0,0,1}",
            "ERL_EPMD_PORT": str(self._names),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_CRASH_DUMP_SECONDS": "0",
        }

    @property
    def url(self) -> str:
        return f"amqp://{USER}:{PASSWORD}@127.0.0.1:{self.port}/%2F"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        with (self._folder / "server.log").open("ab") as log:
            streams: dict[str, Any] = {"stdout": log, "stderr": log, "stdin": subprocess.DEVNULL}
            if self._epmd is None:
                self._epmd = subprocess.Popen(
                    [shutil.which("epmd") or "epmd", "-port", str(self._names), "-address", "127.0.0.1"],
                    env=self._environment,
                    **streams,
                )
            # a group of its own: the server is a shell script around Erlang, with helpers of Erlang's
            self._process = subprocess.Popen(
                [str(self._program)], env=self._environment, start_new_session=True, cwd=self._folder, **streams
            )
        for _ in range(3600):
            assert self._process.poll() is None, (self._folder / "server.log").read_text()[-3000:]
            if _answers(self.port) and _answers(self.stream_port, b""):
                return
            time.sleep(0.05)
        raise AssertionError("the server does not answer: " + (self._folder / "server.log").read_text()[-3000:])

    def stop(self) -> None:
        """End its processes, by the id of their group, as in a crash; what was declared is on its disk by then."""
        if self._process is not None:
            self.sync()
            self.kill()

    def sync(self) -> None:
        """Have it write what was declared: it does so a moment later, and forgot a queue in 1 of 24 tries."""
        self._call("mnesia", "sync_log")

    def kill(self) -> None:
        """End its processes at once, by the id of their group."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def end(self) -> None:
        """End it, and its epmd."""
        self.kill()
        if self._epmd is not None:
            self._epmd.kill()
            self._epmd.wait()

    def keep_free(self, limit: str) -> None:
        """Have it take no messages where less of its disk is free, such as "50MB"."""
        self._call("rabbit_disk_monitor", "set_disk_free_limit", f'"{limit}"')

    def _call(self, module: str, function: str, arguments: str = "") -> None:
        """Call a function in the server, by a program of Erlang's: rabbitmqctl would start an Erlang of its own for two seconds."""
        asked = [_caller(), "-c", (self._folder / ".erlang.cookie").read_text(), "-sname", self._node]
        asked += ["-a", f"{module} {function} [{arguments}]"]
        done = subprocess.run(asked, env=self._environment, capture_output=True, text=True, timeout=120, check=False)
        assert (done.returncode, done.stdout.strip()) == (0, "ok"), done.stdout + done.stderr

    @contextlib.contextmanager
    def channel(self) -> Iterator[Any]:
        """A channel of the blocking client."""
        import pika

        with contextlib.closing(pika.BlockingConnection(pika.URLParameters(self.url))) as connection:
            yield connection.channel()

    def queue(self, *bodies: bytes, **options: Any) -> str:
        """Make a durable queue with these messages, and return its name."""
        name = f"q-{uuid.uuid4().hex[:12]}"
        with self.channel() as channel:
            channel.queue_declare(name, durable=True, arguments=options or None)
            self.send(name, *bodies, channel=channel)
        return name

    def stream(self, *bodies: bytes, name: str = "", **options: Any) -> str:
        """Make a stream with these messages, and return its name."""
        name = name or f"s-{uuid.uuid4().hex[:12]}"
        with self.channel() as channel:
            channel.queue_declare(name, durable=True, arguments={"x-queue-type": "stream", **options})
            channel.confirm_delivery()
            for body in bodies:
                channel.basic_publish("", name, body)
        return name

    def send(self, queue: str, *bodies: bytes, channel: Any = None, **properties: Any) -> None:
        """Send messages to a queue, and wait until it has them."""
        import pika

        if channel is None:
            with self.channel() as channel:
                return self.send(queue, *bodies, channel=channel, **properties)
        said = pika.BasicProperties(delivery_mode=2, **properties)
        channel.tx_select()
        for body in bodies:
            channel.basic_publish("", queue, body, said)
        return channel.tx_commit()

    def messages(self, queue: str) -> list[tuple[Any, bytes]]:
        """Return what stands in a queue, as (properties, body), and leave it there."""
        found = []
        with self.channel() as channel:
            while True:
                method, properties, body = channel.basic_get(queue)
                if method is None:
                    return found
                found.append((properties, body))

    def in_stream(self, stream: str) -> list[bytes]:
        """Return the bodies of a stream's messages."""
        import pika

        with self.channel() as channel:
            channel.confirm_delivery()
            channel.basic_publish("", stream, b"end", mandatory=True)
        connection, found = pika.BlockingConnection(pika.URLParameters(self.url)), []
        channel = connection.channel()
        channel.basic_qos(prefetch_count=1000)
        for method, _, body in channel.consume(stream, arguments={"x-stream-offset": "first"}):
            channel.basic_ack(method.delivery_tag)
            if body == b"end":
                break
            found.append(body)
        with contextlib.suppress(Exception):  # pika gives back what has come ahead, which a stream does not take
            connection.close()
        return found

    def ready(self, queue: str) -> int:
        """Return the number of messages that nobody has taken."""
        with self.channel() as channel:
            return channel.queue_declare(queue, passive=True).method.message_count


def _answers(port: int, hello: bytes = b"AMQP\x00\x00\x09\x01") -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as client:
            client.sendall(hello)
            return not hello or bool(client.recv(1))
    except OSError:
        return False


@contextlib.contextmanager
def running() -> Iterator[Server]:
    """A server in a folder of its own. Raises NotToBeHadError."""
    with tempfile.TemporaryDirectory(prefix="rabbitmq-", ignore_cleanup_errors=True) as folder:
        server = Server(Path(folder))
        try:
            server.start()
            yield server
        finally:
            server.end()
