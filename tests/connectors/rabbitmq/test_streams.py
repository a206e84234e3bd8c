"""RabbitMQStreamSource against a real server: laws of the contract, where it begins and ends, and what was removed unread."""

from __future__ import annotations

import logging
import re
import socket
import threading
import time

import pytest
from waiting import until

from esault import SourceError, TopologyError
from esault.sources import RabbitMQStreamSource
from esault.testing.contract import check_spout
from esault.topology.context import Context
from esault.topology.spout import EndOfStream


class Opened:
    """A source that is open, and a reader of its only stream."""

    def __init__(self, source, position=None):
        self.source = source
        source.open(Context("src", logger=logging.getLogger("esault.streams.test")))
        self.reader = source.open_split(source.splits()[0], position)
        self.rows = []

    def take(self, count):
        """Return the values of so many rows."""
        self.rows = []
        self._until(lambda: len(self.rows) >= count, count)
        return [value for _, value in self.rows]

    def rest(self):
        """Return the values up to the end."""
        self.rows = []
        with pytest.raises(EndOfStream):
            self._until(lambda: False, 1 << 30)
        return [value for _, value in self.rows]

    def _until(self, done, most):
        deadline = time.monotonic() + 60
        while not done():
            assert time.monotonic() < deadline, self.rows
            rows = self.reader.read(min(7, most - len(self.rows)))
            assert len(self.reader.row_ids()) == len(rows)
            self.rows += rows
            if not rows:
                time.sleep(0.005)

    def close(self):
        """Close it, and return the position."""
        position = self.reader.position()
        self.reader.close()
        self.source.close()
        return position


@pytest.fixture
def opened(server):
    every = []

    def open_one(stream, position=None, **options):
        every.append(Opened(RabbitMQStreamSource(stream, server.url, **options), position))
        return every[-1]

    yield open_one
    for each in every:
        each.reader.close()


def numbers(*some):
    return [b"%d" % n for n in range(*some)]


def test_the_laws_of_a_source_hold(server):
    stream = server.stream(*numbers(20))
    # A read does not wait for the server, so many give nothing before the first message is there.
    made = lambda: RabbitMQStreamSource(stream, server.url, until="end")
    assert check_spout(made, idle=10**9, positions=3, parts=1) == 20


def test_it_begins_and_ends_where_it_is_told(server, opened):
    stream = server.stream(*numbers(20))
    following = opened(stream, start="next")
    end = opened(stream, until="end")
    server.stream(*numbers(20, 25), name=stream)
    assert end.rest() == list(range(20))
    assert following.take(5) == list(range(20, 25))
    assert opened(stream, start=15, until="end").rest() == list(range(15, 25))
    last = opened(stream, start="last", until="end").rest()
    assert last and last == list(range(25 - len(last), 25))
    assert opened(stream, start_time=time.time() + 3600, until="end").rest() == []
    assert opened(stream, start_time=time.time() - 3600, until="end").rest() == list(range(25))
    assert opened(stream, following.close(), until="end").rest() == []


def test_what_stands_beside_the_value_comes_on_request(server, opened, caplog):
    import pika

    stream = server.stream()
    with server.channel() as channel:
        said = pika.BasicProperties(headers={"who": "ann"}, message_id="m1", timestamp=1_700_000_000)
        channel.confirm_delivery()
        channel.basic_publish("", stream, b'{"a": 1}', said)
        channel.basic_publish("", stream, b"no json")
    found = opened(stream, metadata=True, key=lambda value, properties: properties.message_id, on_bad_message="skip")
    (value,) = found.take(1)
    expected = {"value": {"a": 1}, "headers": {"who": "ann"}, "message_id": "m1", "timestamp": 1_700_000_000}
    assert value == {**expected, "routing_key": stream, "exchange": "", "offset": 0, "stream": stream}
    assert found.rows[0][0] == "m1"
    with pytest.raises(SourceError, match="offset 1: JSONDecodeError.*on_bad_message"):
        opened(stream).take(2)
    server.stream(b"7", name=stream)
    assert found.take(1)[0]["value"] == 7 and found.reader.counters() == {"bad_messages_skipped": 1}
    assert re.search(r"offset 1: JSONDecodeError: .* \(the message is left out; further ones are only", caplog.text)


def test_messages_that_were_removed_unread_are_said_and_counted(server, opened, caplog):
    options = {"x-max-length-bytes": 40_000, "x-stream-max-segment-size-bytes": 10_000}
    stream = server.stream(**options)
    first = opened(stream, deserializer=lambda body: int(body[:8]))
    body = [b"%08d" % n + b"x" * 990 for n in range(200)]
    server.stream(*body[:5], name=stream, **options)
    assert first.take(5) == list(range(5))
    position = first.close()
    server.stream(*body[5:], name=stream, **options)
    second = opened(stream, position, deserializer=lambda body: int(body[:8]))
    (value,) = second.take(1)
    # The server begins each segment with an entry of its own, which has an offset, too.
    at = second.reader.position()[0] - 1
    assert value > 5 and second.reader.counters() == {"offsets_removed_unread": at - position[0]}
    assert f"messages of offsets {position[0]} to {at - 1} were removed before they were read" in caplog.text
    fails = opened(stream, position, deserializer="bytes", on_removed="fail")
    with pytest.raises(SourceError, match='removed before they were read.*on_removed="warn"'):
        fails.take(1)


def test_a_stream_that_was_made_anew_is_said_and_read(server, opened, caplog):
    stream = server.stream(*numbers(10))
    reader = opened(stream)
    assert reader.take(10) == list(range(10))
    before = {*reader.reader.row_ids()}
    position = reader.close()
    with server.channel() as channel:
        channel.queue_delete(stream)
    server.stream(*numbers(50, 53), name=stream)
    anew = opened(stream, position)
    assert anew.take(3) == [50, 51, 52]
    assert not {*anew.reader.row_ids()} & before
    assert "it ends at offset 2, and is read up to 9: it was made anew" in caplog.text
    with server.channel() as channel:
        channel.queue_delete(stream)
    with pytest.raises(SourceError, match="was deleted while it was read"):
        anew.take(1)


def test_a_stream_that_gets_messages_meanwhile_is_asked_like_any(server):
    stream, over = server.stream(), threading.Event()

    def publish():
        with server.channel() as channel:
            while not over.is_set():
                channel.basic_publish("", stream, b"1")
                channel.connection.process_data_events(0)

    publisher = threading.Thread(target=publish)
    publisher.start()
    try:
        for _ in range(5):
            RabbitMQStreamSource(stream, server.url).check()
    finally:
        over.set()
        publisher.join()


def test_what_is_amiss_is_said(server):
    def checked(name, url=server.url):
        with pytest.raises(SourceError) as error:
            RabbitMQStreamSource(name, url).check()
        assert "wonder" not in str(error.value)
        return str(error.value)

    RabbitMQStreamSource(server.stream(), server.url).check()
    assert "is a queue: take RabbitMQSource" in checked(server.queue())
    assert "make it, or correct its name" in checked("nope")
    assert "correct user and password" in checked("nope", server.url.replace("wonder", "wrong"))
    assert "does not answer" in checked("nope", "amqp://127.0.0.1:1/")


@pytest.mark.parametrize(
    "options",
    [
        {"streams": ""},
        {"streams": ["a", "a"]},
        {"url": "http://x"},
        {"key": 5},
        {"start": "x"},
        {"start": -1},
        {"start": True},
        {"start_time": "x"},
        {"until": "x"},
        {"prefetch": 0},
        {"deserializer": 5},
        {"on_bad_message": "x"},
        {"on_removed": "x"},
    ],
)
def test_wrong_arguments_are_refused(options):
    with pytest.raises(TopologyError, match="RabbitMQStreamSource"):
        RabbitMQStreamSource(**{"streams": "s", **options})


def test_a_connection_that_breaks_is_made_anew_where_the_messages_end(server, opened, caplog):
    stream = server.stream(*numbers(100))
    reader = opened(stream, prefetch=20)
    assert reader.take(50) == list(range(50))
    link = reader.reader._link
    link.call(lambda: link._connection._transport._sock.shutdown(socket.SHUT_RDWR))
    server.stream(*numbers(100, 110), name=stream)
    assert reader.take(60) == list(range(50, 110))
    assert "waiting until it does" in caplog.text and "answers again" in caplog.text
    assert reader.reader.counters() == {}


def test_it_has_caught_up_when_all_that_was_there_has_been_read(server, opened):
    stream = server.stream(*numbers(20))
    reads = opened(stream)
    assert reads.take(19) == list(range(19))
    assert not reads.reader.caught_up()
    until(lambda: reads.reader._looking.done())
    assert not reads.reader.caught_up()
    assert reads.take(1) == [19] and reads.reader.caught_up()
    empty = opened(server.stream()).reader
    until(empty.caught_up)
