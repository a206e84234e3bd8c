"""A real NATS server with JetStream for tests: in a folder and on a port of its own, ended with the test."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from ports import free_port

T = TypeVar("T")
USER, PASSWORD = "alice", "wonder"


class NotToBeHadError(Exception):
    """What a server needs is not on this machine."""


class Server:
    """One server. `url` is where it is reached, with a password."""

    def __init__(self, folder: Path, program: str, *options: str) -> None:
        self.folder, self._program, self._options = folder, program, options
        self.port = free_port()
        self.url = f"nats://{USER}:{PASSWORD}@127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        told = {
            "-a": "127.0.0.1",
            "-p": self.port,
            "-sd": self.folder / "data",
            "-l": self.folder / "log",
        }
        if "-c" not in self._options:  # else its users are those of the file
            told |= {"--user": USER, "--pass": PASSWORD}
        options = [str(part) for option in told.items() for part in option]
        self._process = subprocess.Popen([self._program, "-js", *options, *self._options], stdin=subprocess.DEVNULL)
        for _ in range(600):
            assert self._process.poll() is None, (self.folder / "log").read_text()[-3000:]
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=2) as client:
                if client.recv(4) == b"INFO":
                    return
            time.sleep(0.02)
        raise AssertionError((self.folder / "log").read_text()[-3000:])

    def stop(self) -> None:
        """Kill it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(60)
            self._process = None

    def ask(self, question: Callable[[Any], Awaitable[T]]) -> T:
        """Return the answer to a question to JetStream, as nats-py has it."""
        import nats

        async def asked() -> T:
            connection = await nats.connect(self.url)
            try:
                return await question(connection.jetstream())
            finally:
                await connection.close()

        return asyncio.run(asked())

    def stream(self, *messages: tuple[str, bytes], name: str = "", **options: Any) -> str:
        """Make a stream of all subjects that begin with its name, put (rest of subject, data) into it, and return the name."""
        name = name or f"S-{uuid.uuid4().hex[:10]}"

        async def make(js: Any) -> None:
            await js.add_stream(name=name, subjects=[f"{name}.>"], **options)

        self.ask(make)
        self.send(name, messages)
        return name

    def send(self, stream: str, messages: Iterable[tuple[str, bytes]], **headers: str) -> None:
        """Put messages into a stream of `stream`."""

        async def publish(js: Any) -> None:
            waiting = list(messages)
            for at in range(0, len(waiting), 1000):
                some = waiting[at : at + 1000]
                await asyncio.gather(
                    *(js.publish(f"{stream}.{subject}", data, headers=headers or None) for subject, data in some)
                )

        self.ask(publish)

    def messages(self, stream: str, start: int = 1) -> list[Any]:
        """Return the messages of a stream, as nats-py has them."""

        async def read(js: Any) -> list[Any]:
            last = (await js.stream_info(stream)).state
            if not last.messages:
                return []
            subscription = await js.subscribe(">", stream=stream, ordered_consumer=True)
            return [await subscription.next_msg(5) for _ in range(last.messages)]

        return self.ask(read)


@contextlib.contextmanager
def running(*options: str) -> Iterator[Server]:
    """A server in a folder of its own, with more options of nats-server; a file of options has `USER`. Raises NotToBeHadError."""
    program = shutil.which("nats-server")
    if program is None:
        raise NotToBeHadError("there is no NATS: apt-get install nats-server")
    with tempfile.TemporaryDirectory(prefix="nats-", ignore_cleanup_errors=True) as folder:
        server = Server(Path(folder), program, *options)
        try:
            server.start()
            yield server
        finally:
            server.stop()
