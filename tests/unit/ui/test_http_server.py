"""The server of metrics beside strangers of the same machine."""

from __future__ import annotations

import contextlib
import errno
import http.client
import os
import socket
import ssl
import threading
import time
import urllib.request
from pathlib import Path

import pytest

from esault.ui import http_server
from esault.ui.http_server import MOST, HttpServer


def answer(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"answered"]


@pytest.fixture
def server():
    made = HttpServer("127.0.0.1", 0, answer)
    made.start()
    yield made
    made.close()


def asked(server) -> bytes:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/metrics", timeout=20) as answered:
        return answered.read()


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_who_connects_and_says_nothing_takes_no_more_than_a_few_places(server):
    before = descriptors()
    with contextlib.ExitStack() as open_ones:
        for _ in range(300):
            open_ones.enter_context(socket.create_connection(("127.0.0.1", server.server_port)))
        assert asked(server) == b"answered"
        # 300 ends are ours, the server's are bounded
        until = time.monotonic() + 30  # threads close what was cut in their own time
        while descriptors() - before > 300 + MOST + 8 and time.monotonic() < until:
            time.sleep(0.01)
        assert descriptors() - before <= 300 + MOST + 8


def test_who_says_nothing_is_hung_up_on_in_time(monkeypatch):
    monkeypatch.setattr(http_server._Handler, "timeout", 0.05)
    server = HttpServer("127.0.0.1", 0, answer)
    server.start()
    try:
        with socket.create_connection(("127.0.0.1", server.server_port), timeout=20) as silent:
            assert silent.recv(1) == b""
    finally:
        server.close()


def test_no_descriptors_for_a_while_is_no_end(server, monkeypatch):
    accept = socket.socket.accept
    left = [3]

    def failing(self):
        if left[0]:
            left[0] -= 1
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return accept(self)

    monkeypatch.setattr(server.socket.__class__, "accept", failing)
    monkeypatch.setattr(http_server, "_NO_DESCRIPTORS", 0.001)
    assert asked(server) == b"answered"
    assert left == [0]


@pytest.mark.parametrize(
    ("host", "status"),
    [("127.0.0.1:99", 200), ("localhost", 200), ("[::1]:80", 200), ("rebound.example", 403), ("10.0.0.1:80", 403)],
)
def test_a_page_that_leads_its_own_name_here_reads_nothing(server, host, status):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    connection.request("GET", "/metrics", headers={"Host": host})
    answered = connection.getresponse()
    assert (answered.status, answered.read() == b"answered") == (status, status == 200)
    connection.close()


def test_a_reader_that_has_gone_is_not_told_of_in_the_runs_log(capsys):
    """Behind TLS that is an SSLEOFError, of which wsgiref would print the traceback among lines of JSON."""
    ended = threading.Event()

    def endless(environ, start_response):
        start_response("200 OK", [("Content-Type", "text/plain")])
        try:
            while True:
                yield b"x" * 65536
        finally:
            ended.set()

    class Gone:
        def __init__(self, connection):
            self._connection, self._sent = connection, 0

        def sendall(self, data):
            self._sent += 1
            if self._sent > 3:
                raise ssl.SSLEOFError(8, "EOF occurred in violation of protocol")
            self._connection.sendall(data)

    class Handler(http_server._Handler):
        def setup(self):
            super().setup()
            self.wfile = http_server._Writer(Gone(self.connection))

    server = HttpServer("127.0.0.1", 0, endless)
    server.RequestHandlerClass = Handler
    server.start()
    try:
        with contextlib.suppress(http.client.IncompleteRead):
            asked(server)
        assert ended.wait(20)
    finally:
        server.close()
    assert capsys.readouterr().err == ""
