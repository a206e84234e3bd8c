"""A real S3 for tests: moto's server as a process of its own, on a port of its own, ended with the test."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ports import free_port

#: what a client finds in its environment
KEYS = {
    "AWS_ACCESS_KEY_ID": "wonder",
    "AWS_SECRET_ACCESS_KEY": "land",
    "AWS_DEFAULT_REGION": "us-east-1",
    # else a client without keys asks a machine of Amazon's for them
    "AWS_EC2_METADATA_DISABLED": "true",
}


class NotToBeHadError(Exception):
    """What a server needs is not on this machine."""


class Server:
    """One server, whose objects are in its memory. `url` is where it is reached."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "log"
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.environment = {**KEYS, "AWS_ENDPOINT_URL": self.url}
        self._process: subprocess.Popen[bytes] | None = None
        self._client: Any = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("atomic_moto.py")), str(self.port)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **KEYS},
            )
        for _ in range(1200):
            assert self._process.poll() is None, self._log.read_text()[-3000:]
            with contextlib.suppress(OSError, urllib.error.URLError):
                urllib.request.urlopen(self.url, timeout=5).close()
                return
            time.sleep(0.05)
        raise AssertionError(self._log.read_text()[-3000:])

    def stop(self) -> None:
        """Kill it; its objects are gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(60)
            self._process = None

    def forget(self) -> None:
        """Have it without any bucket, as it was when it began: a start takes two seconds of processor time."""
        urllib.request.urlopen(urllib.request.Request(f"{self.url}/moto-api/reset", method="POST"), timeout=30).close()

    @property
    def client(self) -> Any:
        """A client of boto3, which shares no code with the engine."""
        if self._client is None:
            import boto3

            self._client = boto3.client(
                "s3",
                endpoint_url=self.url,
                aws_access_key_id=KEYS["AWS_ACCESS_KEY_ID"],
                aws_secret_access_key=KEYS["AWS_SECRET_ACCESS_KEY"],
                region_name=KEYS["AWS_DEFAULT_REGION"],
            )
        return self._client

    def ask_for_rights(self, asks: bool) -> None:
        """Whether it looks who is who, and what each may."""
        request = urllib.request.Request(
            f"{self.url}/moto-api/reset-auth", data=b"0" if asks else b"inf", method="POST"
        )
        request.add_header("Content-Type", "text/plain")
        urllib.request.urlopen(request, timeout=30).close()

    def put(self, bucket: str, key: str, body: bytes | str) -> None:
        """Write a whole object."""
        self.client.put_object(Bucket=bucket, Key=key, Body=body.encode() if isinstance(body, str) else body)

    def keys(self, bucket: str, prefix: str = "") -> list[str]:
        """Return all keys, sorted."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return sorted(each["Key"] for page in pages for each in page.get("Contents", ()))

    def body(self, bucket: str, key: str) -> bytes:
        """Return an object's bytes."""
        body: bytes = self.client.get_object(Bucket=bucket, Key=key)["Body"].read()
        return body


@contextlib.contextmanager
def running() -> Iterator[Server]:
    """A server in a folder of its own. Raises NotToBeHadError."""
    for module in ("moto.server", "s3fs", "boto3"):
        try:
            found = importlib.util.find_spec(module)
        except ModuleNotFoundError:
            found = None
        if found is None:
            raise NotToBeHadError(f"{module} is not installed: pip install 'moto[server]' boto3 'esault[s3]'")
    with tempfile.TemporaryDirectory(prefix="s3-", ignore_cleanup_errors=True) as folder:
        server = Server(Path(folder))
        try:
            server.start()
            yield server
        finally:
            server.stop()
