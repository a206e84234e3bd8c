"""A web service that answers GETs, for tests: in threads of this process, on a real socket."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit


class Feed:
    """`answer(feed, asked, send)` answers one request: `asked` is the dict of its parameters and headers, `send(status, body, headers)`."""

    def __init__(self, answer: Callable[[dict[str, str]], tuple[int, Any, dict[str, str]]], port: int = 0) -> None:
        self.asked: list[dict[str, str]] = []
        feed = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked = {**dict(self.headers), **dict(parse_qsl(urlsplit(self.path).query))}
                feed.asked.append(asked)
                status, body, headers = answer(asked)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                pieces = isinstance(body, list) and body and all(isinstance(part, bytes) for part in body)
                for part in body if pieces else [body]:
                    self.wfile.write(part if isinstance(part, bytes) else json.dumps(part).encode())
                    self.wfile.flush()

            def log_message(self, *of: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *of: Any) -> None:
                """A client that was killed."""

        self._server = Server(("127.0.0.1", port), Handler)
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/feed"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextlib.contextmanager
def feeding(answer: Callable[[dict[str, str]], tuple[int, Any, dict[str, str]]], **options: Any) -> Iterator[Feed]:
    """A service that ends with the test."""
    made = Feed(answer, **options)
    try:
        yield made
    finally:
        made.close()
