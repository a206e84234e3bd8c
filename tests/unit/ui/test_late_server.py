"""A server that listens once the run's processes are there."""

from __future__ import annotations

import socket
import urllib.request

import pytest

from esault.errors import UsageError
from esault.ui.late_server import LateServer


def nothing(*_args):
    raise AssertionError("nobody asks")


def test_a_port_that_is_taken_is_refused_before_anything_starts():
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(UsageError, match="--ui .*cannot be listened on"),
    ):
        LateServer("--ui", "127.0.0.1", taken.getsockname()[1], nothing)


def test_it_begins_once_and_says_its_port():
    server = LateServer("--ui", "127.0.0.1", 0, nothing)
    assert server.url == "http://127.0.0.1:0"
    server.close()
    assert server.start(nothing) and not server.start(nothing)
    port = int(server.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), 5):
        pass
    server.close()


def test_it_listens_at_an_address_of_ipv6():
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")

    def answer(environ, start_response):
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [b"answered"]

    server = LateServer("--ui", "::1", 0, answer)
    assert server.url == "http://[::1]:0"
    assert server.start(nothing)
    try:
        with urllib.request.urlopen(server.url, timeout=20) as answered:
            assert answered.read() == b"answered"
        port = int(server.url.rpartition(":")[2])
        with pytest.raises(UsageError, match=rf"\[::1\]:{port} cannot be listened on"):
            LateServer("--ui", "::1", port, nothing)
    finally:
        server.close()


def test_a_port_that_was_taken_meanwhile_is_told_once_and_ends_nothing():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    server = LateServer("--ui", "127.0.0.1", port, nothing)
    told: list[str] = []
    with socket.create_server(("127.0.0.1", port)):
        assert not server.start(told.append) and not server.start(told.append)
    server.close()
    assert len(told) == 1 and f"127.0.0.1:{port} was taken meanwhile" in told[0]
