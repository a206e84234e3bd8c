"""A connection to RabbitMQ: what becomes of one that is not open yet."""

from __future__ import annotations

import socket

import pytest

from esault.errors import SourceError

pytest.importorskip("pika", reason="pika is not installed: pip install 'esault[rabbitmq]'")
from esault.connectors.rabbitmq.link import Link


def test_a_connection_that_is_being_opened_is_closed_too():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(30)
        ready, failed = [], []
        link = Link(
            "reader", f"amqp://127.0.0.1:{silent.getsockname()[1]}/", SourceError, print,
            ready=ready.append, lost=lambda: None, failed=failed.append,
        )  # fmt: skip
        link.start()
        peer, _ = silent.accept()
        with peer:
            peer.settimeout(30)
            assert peer.recv(8) == b"AMQP\x00\x00\x09\x01"  # it waits for an answer now
            link.close()
            assert peer.recv(8) == b""
    assert not link._thread.is_alive()
    assert ready == failed == []
