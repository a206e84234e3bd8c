"""A real Redis for tests: in a folder and on a port of its own, ended with the test."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ports import free_port

PASSWORD = "wonder"


class NotToBeHadError(Exception):
    """What a server needs is not on this machine."""


class Server:
    """One server that loses nothing in a crash. `url` is where it is reached, with a password."""

    def __init__(self, folder: Path, program: str, **settings: str) -> None:
        self.folder, self._program = folder, program
        self.port = free_port()
        self.url = f"redis://:{PASSWORD}@127.0.0.1:{self.port}/0"
        self._settings = {
            "port": str(self.port),
            "bind": "127.0.0.1",
            "dir": str(folder),
            "requirepass": PASSWORD,
            "appendonly": "yes",
            "appendfsync": "always",
            "save": "",
            "logfile": str(folder / "log"),
            **settings,
        }
        self._process: subprocess.Popen[bytes] | None = None
        self.client: Any = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        import redis

        options = [part for name, value in self._settings.items() for part in (f"--{name}", value)]
        self._process = subprocess.Popen([self._program, *options], stdin=subprocess.DEVNULL)
        self.client = redis.Redis.from_url(self.url, decode_responses=True, protocol=2)
        for _ in range(600):
            assert self._process.poll() is None, (self.folder / "log").read_text()[-3000:]
            with contextlib.suppress(redis.ConnectionError):
                self.client.ping()
                return
            time.sleep(0.05)
        raise AssertionError((self.folder / "log").read_text()[-3000:])

    def stop(self) -> None:
        """Kill it."""
        if self._process is not None:
            self.client.close()
            self._process.kill()
            self._process.wait(60)
            self._process = None

    def entries(self, stream: str) -> list[dict[str, str]]:
        """Return the fields of all entries."""
        return [fields for _, fields in self.client.xrange(stream)]


@contextlib.contextmanager
def running(**settings: str) -> Iterator[Server]:
    """A server in a folder of its own. Raises NotToBeHadError."""
    program = shutil.which("redis-server")
    if program is None:
        raise NotToBeHadError("there is no Redis: apt-get install redis-server")
    with tempfile.TemporaryDirectory(prefix="redis-", ignore_cleanup_errors=True) as folder:
        server = Server(Path(folder), program, **settings)
        try:
            server.start()
            yield server
        finally:
            server.stop()
