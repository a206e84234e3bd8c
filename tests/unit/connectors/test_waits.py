"""Waits for a server that is away grow, and not all who wait come back at one moment."""

from __future__ import annotations

import threading

import pytest

from esault.connectors.waits import Waits
from esault.errors import SinkError


def test_waits_double_up_to_a_limit_and_begin_again_when_the_server_has_answered():
    longest, shortest = Waits(chance=lambda: 0.0), Waits(chance=lambda: 1.0)
    expected = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert [longest.next() for _ in expected] == pytest.approx(expected)
    assert [shortest.next() for _ in expected] == pytest.approx([each / 2 for each in expected])
    longest.begin_again()
    assert longest.next() == pytest.approx(0.1)
    assert len({waits.next() for waits in [Waits() for _ in range(20)]}) > 1


def test_a_link_to_rabbitmq_asks_a_server_that_is_away_after_waits_that_grow(monkeypatch):
    pytest.importorskip("pika", reason="pika is not installed: pip install 'esault[rabbitmq]'")
    from esault.connectors.rabbitmq.link import Link

    waits, over, said = [], threading.Event(), []
    link = Link(
        "sink", "amqp://127.0.0.1:1/", SinkError, said.append, ready=print, lost=lambda: None, failed=said.append
    )  # fmt: skip

    def later(seconds, function):
        waits.append(seconds)
        if len(waits) == 8:
            over.set()
        else:
            link.call(function)

    monkeypatch.setattr(link, "later", later)
    link.start()
    assert over.wait(30)
    link.close()
    assert all(most / 2 <= wait <= most for wait, most in zip(waits, [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]))
    assert len(said) == 1


def test_a_publisher_to_nats_does_so_too(monkeypatch):
    pytest.importorskip("nats", reason="nats-py is not installed: pip install 'esault[nats]'")
    import asyncio

    from esault.connectors.nats import publisher
    from esault.connectors.nats.client import Client, server

    waits: list[float] = []

    async def sleep(seconds):
        waits.append(seconds)
        if len(waits) == 8:
            raise InterruptedError

    monkeypatch.setattr(publisher, "asyncio", type("Asyncio", (), {**vars(asyncio), "sleep": staticmethod(sleep)}))
    said: list[str] = []
    client = Client("NatsSink", SinkError, server("NatsSink", "nats://127.0.0.1:1", None, None, None))
    client.say = said.append
    with pytest.raises(InterruptedError):
        client.submit(publisher.Publisher(client, "NatsSink", "ORDERS").base()).result(60)
    client.close()
    assert all(most / 2 <= wait <= most for wait, most in zip(waits, [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]))
    assert len(said) == 1
