"""What a publisher does with messages that no queue takes: behind a restart it gives them again, else they end the run."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from esault import SinkError

pytest.importorskip("pika", reason="pika is not installed: pip install 'esault[rabbitmq]'")
from pika.exceptions import ShortStringTooLong

from esault.connectors.rabbitmq import publisher
from esault.connectors.rabbitmq.publisher import Publisher


class Link:
    """Stands for a connection: what is asked for is done at once, and what is to come later when `pass_time` is called."""

    def __init__(self, *_: Any, ready: Callable, lost: Callable, failed: Callable) -> None:
        self.ready, self.lost, self.failed = ready, lost, failed
        self.waiting: list[Callable[[], None]] = []

    def start(self) -> None:
        pass

    def call(self, function: Callable[[], None]) -> None:
        function()

    def later(self, seconds: float, function: Callable[[], None]) -> None:
        self.waiting.append(function)

    def pass_time(self) -> None:
        waiting, self.waiting = self.waiting, []
        for function in waiting:
            function()


class Channel:
    """Stands for one of pika's: it keeps what is published."""

    is_open = True

    def __init__(self) -> None:
        self.published: list[bytes] = []

    def add_on_return_callback(self, function: Callable) -> None:
        self.on_return = function

    def confirm_delivery(self, answered: Callable, callback: Callable) -> None:
        self.answered = answered
        callback(None)

    def basic_publish(self, exchange: str, routing_key: str, body: bytes, *_: Any, **__: Any) -> None:
        if routing_key == "":
            raise ShortStringTooLong(routing_key)  # as pika does before it sends anything
        self.published.append(body)

    def give_back(self, body: bytes) -> None:
        """As a server does: it returns a message, and then confirms it."""
        method = SimpleNamespace(exchange="", routing_key="q", reply_text="NO_ROUTE")
        self.on_return(self, method, None, body)

    def confirm(self, tag: int, multiple: bool = False) -> None:
        method = SimpleNamespace(delivery_tag=tag, multiple=multiple, NAME="Basic.Ack")
        self.answered(SimpleNamespace(method=method))


@pytest.fixture
def now():
    return [0.0]


@pytest.fixture
def made(monkeypatch, now):
    monkeypatch.setattr(publisher, "Link", Link)
    said: list[str] = []
    found = Publisher("sink", "amqp://", said.append, clock=lambda: now[0])
    return found, found._link, said


MESSAGES = [("", "q", b"%d" % n, {}) for n in range(3)]


def restarted(link):
    link.ready(Channel())
    link.lost()
    channel = Channel()
    link.ready(channel)
    return channel


def test_behind_a_restart_the_first_is_given_again_until_it_is_taken_and_that_is_said_once(made):
    found, link, said = made
    channel = restarted(link)
    done = found.publish(MESSAGES)
    for tag in (1, 2):
        assert channel.published == [b"0"] * tag, "all others wait: the queue must not take them before it"
        channel.give_back(b"0")
        channel.confirm(tag)
        link.pass_time()
    channel.confirm(3)
    assert channel.published == [b"0", b"0", b"0", b"1", b"2"] and not done.done()
    channel.confirm(5, multiple=True)
    assert done.result(0) is None
    assert said == ["no queue takes messages yet behind the restart: they are given to it again"]


def test_each_queue_is_asked_by_itself(made):
    found, link, _ = made
    channel = restarted(link)
    done = found.publish([*MESSAGES, ("", "other", b"3", {}), ("", "q", b"4", {})])
    channel.confirm(1)
    assert channel.published == [b"0", b"1", b"2"]
    channel.confirm(3, multiple=True)
    assert channel.published == [b"0", b"1", b"2", b"3", b"4"]
    channel.confirm(5, multiple=True)
    assert done.result(0) is None


def test_when_nothing_was_away_none_waits_for_another(made):
    found, link, _ = made
    channel = Channel()
    link.ready(channel)
    found.publish(MESSAGES)
    assert channel.published == [b"0", b"1", b"2"]


@pytest.mark.parametrize("seconds", [None, 31.0])
def test_at_the_beginning_and_when_the_server_is_up_for_long_they_end_the_run(made, now, seconds):
    found, link, _ = made
    channel = Channel()
    if seconds is None:
        link.ready(channel)
    else:
        channel = restarted(link)
        now[0] += seconds
    done = found.publish(MESSAGES)
    channel.give_back(b"1")
    with pytest.raises(SinkError, match="takes no message"):
        done.result(0)


def test_a_connection_that_is_lost_meanwhile_forgets_what_was_returned_in_it(made):
    found, link, _ = made
    channel = restarted(link)
    done = found.publish(MESSAGES)
    channel.give_back(b"0")
    link.lost()
    channel = Channel()
    link.ready(channel)
    channel.confirm(1)
    channel.confirm(3, multiple=True)
    assert channel.published == [b"0", b"1", b"2"]
    assert done.result(0) is None


@pytest.mark.parametrize("bad", [("", "", b"", {}), ("", "q", b"", {"nope": 1})])
def test_a_message_that_cannot_be_sent_ends_what_it_belongs_to_and_nothing_else(made, bad):
    found, link, said = made
    channel = Channel()
    link.ready(channel)
    first = found.publish([MESSAGES[0], bad, MESSAGES[1]])
    with pytest.raises(SinkError, match="sink: a message with routing key .* cannot be sent: .*correct properties"):
        first.result(0)
    second = found.publish([MESSAGES[2]])
    assert channel.published == [b"0", b"2"], "the connection is as it was"
    channel.confirm(2, multiple=True)
    assert second.result(0) is None and said == []
