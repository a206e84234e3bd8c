"""A real PostgreSQL for tests: in a folder and on a port of its own, ended with the test."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ports import free_port

USER, PASSWORD = "shop", "wonder"
#: what a server is told, but for its place
SETTINGS = {
    "wal_level": "logical",
    "max_wal_senders": "10",
    "max_replication_slots": "10",
    "wal_sender_timeout": "60s",
    "max_connections": "60",
}


class NotToBeHadError(Exception):
    """What a server needs is not on this machine."""


def programs() -> Path:
    """Return the folder of initdb and postgres. Raises NotToBeHadError."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if found:
        return found[-1].parent
    there = shutil.which("postgres")
    if there is None:
        raise NotToBeHadError("there is no PostgreSQL: apt-get install postgresql")
    return Path(there).parent


class Server:
    """One server. `dsn` is where it is reached, by a user with a password."""

    def __init__(self, folder: Path, bin: Path, **settings: str) -> None:
        self.folder, self._bin = folder, bin
        self.port = free_port()
        self.data = folder / "data"
        self._settings = {
            "port": str(self.port),
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": str(folder),
            **SETTINGS,
            **settings,
        }
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Any = None
        secret = folder / "secret"
        secret.write_text(PASSWORD)
        for path in (folder, secret):
            self._give(path)
        asked = [
            bin / "initdb",
            "-D",
            self.data,
            "-U",
            USER,
            "--pwfile",
            secret,
            "-A",
            "scram-sha-256",
            "-N",
            "-E",
            "UTF8",
        ]
        done = subprocess.run(self._as_user(asked), capture_output=True, text=True, timeout=120, cwd=folder)
        assert not done.returncode, done.stdout + done.stderr

    @property
    def dsn(self) -> str:
        """Where it is."""
        return f"host=127.0.0.1 port={self.port} user={USER} password={PASSWORD} dbname=postgres"

    def _give(self, path: Path) -> None:
        if os.geteuid() == 0:  # it does not run as root
            shutil.chown(path, "postgres", "postgres")

    def _as_user(self, command: list[object]) -> list[str]:
        told = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []
        return [*told, *map(str, command)]

    def start(self) -> None:
        """Start it, and wait until it answers."""
        import psycopg

        options = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            asked = self._as_user([self._bin / "postgres", "-D", self.data, *options])
            self._process = subprocess.Popen(asked, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=self.folder)
        for _ in range(600):
            assert self._process.poll() is None, (self.folder / "log").read_text()[-3000:]
            with contextlib.suppress(psycopg.OperationalError):
                psycopg.connect(self.dsn, connect_timeout=2).close()
                return
            time.sleep(0.05)
        raise AssertionError((self.folder / "log").read_text()[-3000:])

    def stop(self, with_signal: int = 2) -> None:
        """End it; by default as `pg_ctl -m fast` does: its processes end with it."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._process is not None:
            self._process.send_signal(with_signal)
            self._process.wait(60)
            self._process = None

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Let all of its processes stand still meanwhile: connections stay, and nothing answers."""
        import psutil

        assert self._process is not None
        first = psutil.Process(self._process.pid)
        first.suspend()  # it makes no others from here on
        all = [first, *first.children(recursive=True)]
        for each in all[1:]:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.suspend()
        try:
            yield
        finally:
            for each in all:
                with contextlib.suppress(psutil.NoSuchProcess):
                    each.resume()

    def ask(self, statement: str, *values: object) -> list[tuple]:
        """Return the rows of a statement, by one connection as long as the server lives: passwords take it milliseconds to check."""
        import psycopg

        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(self.dsn, autocommit=True)
        cursor = self._connection.execute(statement, values or None)
        return cursor.fetchall() if cursor.description else []


@contextlib.contextmanager
def running(**settings: str) -> Iterator[Server]:
    """A server in a folder of its own. Raises NotToBeHadError."""
    bin = programs()
    with tempfile.TemporaryDirectory(prefix="postgres-", ignore_cleanup_errors=True) as folder:
        os.chmod(folder, 0o755)
        server = Server(Path(folder), bin, **settings)
        try:
            server.start()
            yield server
        finally:
            server.stop()
