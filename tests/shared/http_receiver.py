"""A web service that takes POSTs, for tests: in threads of this process, on a real socket."""

from __future__ import annotations

import contextlib
import json
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple


class Got(NamedTuple):
    """One request."""

    body: Any
    headers: dict[str, str]

    @property
    def key(self) -> str:
        return self.headers["Idempotency-Key"]


class Receiver:
    """`got` has what was taken, in order; `answer(got)` says the status, or (status, headers)."""

    def __init__(
        self, port: int = 0, answer: Callable[[Got], Any] = lambda got: 200, files: tuple[str, str] | None = None
    ) -> None:
        self.got: list[Got] = []
        self.refused: list[Got] = []
        self.answer = answer
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                got = Got(json.loads(body), dict(self.headers))
                said = receiver.answer(got)
                status, headers = said if isinstance(said, tuple) else (said, {})
                (receiver.got if status < 300 else receiver.refused).append(got)
                self.send_response(status)
                for name, value in {"Content-Length": "2", **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(b"ok")

            def log_message(self, *of: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            def handle_error(self, *of: Any) -> None:
                """A client that was killed, or refuses the certificate."""

        self._server = Server(("127.0.0.1", port), Handler)
        if files is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*files)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._scheme = "http" if files is None else "https"
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self.port}/hook"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextlib.contextmanager
def receiving(**options: Any) -> Iterator[Receiver]:
    """A service that ends with the test."""
    made = Receiver(**options)
    try:
        yield made
    finally:
        made.close()


def certificate_of(folder: Path, days: int = 2) -> tuple[str, str]:
    """Return the files of a certificate that signs itself, and of its key; `days` below 0: it has expired."""
    paths = str(folder / "cert.pem"), str(folder / "key.pem")
    asked = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    of = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-days", "2"]
    subprocess.run([*asked, *of, "-out", paths[0], "-keyout", paths[1]], check=True, capture_output=True)
    if days < 0:  # only `x509` makes such
        again = ["openssl", "x509", "-in", paths[0], "-signkey", paths[1], "-out", paths[0], "-days", str(days)]
        subprocess.run(again, check=True, capture_output=True)
    return paths
