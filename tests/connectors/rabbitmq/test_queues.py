"""Messages from a queue and to a queue, of a real server: what is in them, what is refused, and what is waited for."""

from __future__ import annotations

import json
import logging
import time

import depth
import pytest

from esault import Topology
from esault.connectors.rabbitmq import link
from esault.connectors.waits import Waits
from esault.errors import EsaultError, SinkError, SourceError, TopologyError
from esault.sinks import RabbitMQSink
from esault.sources import Items, RabbitMQSource
from esault.testing import LocalRuntime
from esault.testing.contract import check_sink, check_spout
from esault.topology.context import Context
from esault.topology.error_policy import Backoff
from esault.topology.sink import Row


def read_until(spout, count, limit=10):
    rows = []
    end = time.monotonic() + 60
    while len(rows) < count and time.monotonic() < end:
        rows += spout.read(limit) or [time.sleep(0.01)][:0]
    return rows


_OPEN = []


@pytest.fixture(autouse=True)
def _closed():
    yield
    while _OPEN:
        _OPEN.pop().close()


def opened(connector):
    connector.open(Context("queue"))
    _OPEN.append(connector)
    return connector


def until(condition):
    end = time.monotonic() + 60
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    assert condition()


class TestSource:
    def test_a_queue_keeps_the_contract_of_spouts(self, server):
        pika = pytest.importorskip("pika")
        queue = server.queue()

        def make():
            with server.channel() as channel:
                channel.queue_purge(queue)
                channel.tx_select()
                for n in range(30):
                    channel.basic_publish("", queue, b"%d" % n, pika.BasicProperties(message_id=f"m{n}"))
                channel.tx_commit()
            return RabbitMQSource(queue, server.url, until="empty", unique_ids=True)

        # A queue is not read twice: each object finds it filled anew, so one part has all. Without ids what comes again counts twice.
        assert check_spout(make, parts=1, positions=4, idle=10**9) == 30

    def test_what_is_not_acknowledged_comes_again_and_says_so(self, server):
        queue = server.queue(*(b"%d" % n for n in range(10)))
        first = opened(RabbitMQSource(queue, server.url, metadata=True))
        four = read_until(first, 4, 1)
        assert [value["redelivered"] for _, value in four] == [False] * 4
        position = first.position()
        read_until(first, 6)
        first.commit(position)
        first.close()
        second = opened(RabbitMQSource(queue, server.url, metadata=True))
        second.commit(position)  # of another connection: it acknowledges nothing
        rest = read_until(second, 6)
        assert [(value["value"], value["redelivered"]) for _, value in rest] == [(n, True) for n in range(4, 10)]
        second.commit(second.position())
        second.close()
        assert server.ready(queue) == 0

    def test_no_more_than_prefetch_is_held_and_it_is_said(self, server, caplog):
        queue = server.queue(*(b"%d" % n for n in range(10)))
        spout = opened(RabbitMQSource(queue, server.url, prefetch=3))
        assert len(read_until(spout, 3)) == 3
        assert list(spout.read(10)) == []
        assert "raise prefetch" in caplog.text
        assert spout.held_back()
        spout.commit(spout.position())
        assert not spout.held_back()
        assert len(read_until(spout, 3)) == 3
        spout.close()

    def test_a_bad_message_goes_to_the_dead_letter_exchange(self, server, caplog):
        dead = server.queue()
        letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
        queue = server.queue(b"1", b"{", b"2", b"{", **letters)
        spout = opened(RabbitMQSource(queue, server.url, on_bad_message="reject"))
        assert [value for _, value in read_until(spout, 2)] == [1, 2]
        until(lambda: spout.read(10) == [] and server.ready(dead) == 2)
        assert spout.counters() == {"bad_messages_rejected": 2}
        assert caplog.text.count("(the message is rejected; further ones are only counted)") == 1
        spout.commit(spout.position())
        spout.close()
        assert server.ready(queue) == 0

    def test_a_bad_message_ends_the_run_unless_it_is_rejected(self, server):
        spout = opened(RabbitMQSource(server.queue(b"{"), server.url))
        with pytest.raises(SourceError, match="on_bad_message"):
            read_until(spout, 1)
        spout.close()

    def test_a_queue_that_is_deleted_ends_the_run(self, server):
        queue = server.queue(b"1")
        spout = opened(RabbitMQSource(queue, server.url))
        read_until(spout, 1)
        with server.channel() as channel:
            channel.queue_delete(queue)
        with pytest.raises(SourceError, match="deleted while it was read"):
            until(lambda: spout.read(1))
        spout.close()


class TestSink:
    def test_a_queue_keeps_the_contract_of_sinks_where_readers_drop_repeats(self, server):
        def queue(place):
            return f"{place.parent.name}-{place.name}"

        def read(place):
            try:
                found = server.messages(queue(place))
            except Exception as error:
                assert "NOT_FOUND" in str(error)
                return []
            once = {properties.message_id: (properties, body) for properties, body in reversed(found)}
            return [(p.headers["key"], json.loads(body)) for p, body in reversed(once.values())]

        def make(place):
            return RabbitMQSink(queue(place), server.url, declare=True, properties=lambda k, v: {"headers": {"key": k}})

        assert check_sink(make, read) >= 7

    def test_a_commit_that_comes_again_publishes_nothing(self, server):
        queue = server.queue()
        handles = []
        for _ in range(2):
            sink = RabbitMQSink(queue, server.url)
            sink.open(Context("out", run="run", lineage="folder"))
            if not handles:
                sink.write([Row("k", n, 0.0, f"1:{n}") for n in range(3)])
                handles.append(sink.prepare(1).result())
            done = sink.commit(1, handles[0])
            assert done is None or done.result(30) is None
            sink.close()
        assert [p.message_id for p, _ in server.messages(queue)] == [
            "folder-out-1:0",
            "folder-out-1:1",
            "folder-out-1:2",
        ]

    def test_a_message_has_properties(self, server):
        queue = server.queue()
        sink = RabbitMQSink(
            queue, server.url, value_serializer="text", properties=lambda k, v: {"priority": 3, "type": k}
        )
        t = Topology("properties")
        t.spout("rows", Items([("a", "b")])).sink("out", sink)
        LocalRuntime(t, real=True).run_until_drained()
        ((properties, body),) = server.messages(queue)
        assert (body, properties.priority, properties.type) == (b"b", 3, "a")
        assert (properties.content_type, properties.delivery_mode) == ("text/plain", 2)
        assert properties.message_id

    def test_an_exchange_takes_rows_by_routing_key_and_one_that_nobody_takes_ends_the_run(self, server):
        queue, exchange = server.queue(), f"x-{time.time_ns()}"
        with server.channel() as channel:
            channel.exchange_declare(exchange, "topic", durable=True)
            channel.queue_bind(queue, exchange, "order.*")
        sink = opened(RabbitMQSink(url=server.url, exchange=exchange, routing_key=lambda key, value: f"{key}.new"))
        sink.check()
        sink.write([Row("order", 1, 0.0, "1:1")])
        sink.commit(1, sink.prepare(1)).result(30)
        sink.write([Row("other", 2, 0.0, "1:2")])
        with pytest.raises(SinkError, match=r"other.new.*on_unroutable"):
            sink.commit(2, sink.prepare(2)).result(30)
        sink.close()
        assert [body for _, body in server.messages(queue)] == [b"1"]

    def test_a_full_queue_is_waited_for(self, server, caplog):
        queue = server.queue(**{"x-max-length": 2, "x-overflow": "reject-publish"})
        sink = opened(RabbitMQSink(queue, server.url))
        sink.write([Row("k", n, 0.0, f"1:{n}") for n in range(5)])
        done = sink.commit(1, sink.prepare(1))
        until(lambda: "are given to it again" in caplog.text)
        taken = []
        while not done.done():
            with server.channel() as channel:
                method, _, body = channel.basic_get(queue, auto_ack=True)
                taken += [body] if method else []
        taken += [body for _, body in server.messages(queue)]
        sink.close()
        assert sorted(taken) == [b"0", b"1", b"2", b"3", b"4"]

    def test_a_server_whose_disk_is_full_is_waited_for_and_it_is_said(self, server, caplog):
        queue = server.queue()
        sink = opened(RabbitMQSink(queue, server.url))
        server.keep_free("1000000GB")  # as if no more than that were free
        try:
            sink.write([Row("k", n, 0.0, f"1:{n}") for n in range(5)])
            done = sink.commit(1, sink.prepare(1))
            until(lambda: "its memory or disk is short" in caplog.text)
            assert not done.done()
        finally:
            server.keep_free("50MB")
        done.result(60)
        sink.close()
        assert [body for _, body in server.messages(queue)] == [b"0", b"1", b"2", b"3", b"4"]

    def test_a_sink_that_is_behind_says_that_it_is_full(self, server):
        queue = server.queue()
        sink = opened(RabbitMQSink(queue, server.url))
        rows = [Row("k", n, 0.0, f"1:{n}") for n in range(12_000)]
        assert sink.write(rows) is None
        done = sink.commit(1, sink.prepare(1))
        room = sink.write(rows[:10])
        assert room is not None
        room.result(60)
        done.result(60)
        sink.commit(2, sink.prepare(2)).result(60)
        sink.close()
        assert server.ready(queue) == 12_010


class TestBadInput:
    @pytest.mark.parametrize("connector", [RabbitMQSource, RabbitMQSink])
    def test_what_is_missing_or_refused_is_said_before_anything_starts(self, server, connector):
        for url, said in (
            ("amqp://alice:wonder@127.0.0.1:1/%2F", "does not answer.*see that RabbitMQ runs"),
            (server.url.replace("wonder", "guess"), "refuses user 'alice'"),
            (server.url.replace("amqp:", "amqps:"), "does not speak TLS there: correct the port, or write amqp://"),
            (server.url, "no queue 'nothing'.*make it"),
            (server.url.replace("%2F", "nowhere"), "nowhere.*virtual host"),
        ):
            with pytest.raises(EsaultError, match=f"(?s){said}") as raised:
                connector("nothing", url).check()
            assert "wonder" not in str(raised.value)
            assert "guess" not in str(raised.value)

    def test_options_are_looked_at_at_once(self):
        for wrong in (
            {"queue": ""},
            {"url": "localhost"},
            {"prefetch": 0},
            {"until": "end"},
            {"on_bad_message": "skip"},
        ):
            with pytest.raises(TopologyError, match=next(iter(wrong))):
                RabbitMQSource(**{"queue": "q", **wrong})
        for wrong in ({}, {"queue": "q", "exchange": "x"}, {"exchange": "x", "routing_key": "k", "declare": True}):
            with pytest.raises(TopologyError, match="queue"):
                RabbitMQSink(**wrong)


def test_a_server_that_restarts_is_waited_for_and_nothing_is_lost(server, caplog):
    caplog.set_level(logging.WARNING)
    here, there = server.queue(*(b"%d" % n for n in range(50))), server.queue()
    spout, sink = opened(RabbitMQSource(here, server.url)), opened(RabbitMQSink(there, server.url))

    def move(count):
        rows = read_until(spout, count)
        sink.write([Row(key, value, 0.0, f"1:{value}") for key, value in rows])
        return rows, sink.commit(1, sink.prepare(1))

    _, done = move(20)
    done.result(60)
    server.stop()
    sink.write([Row("k", -1, 0.0, "1:-1")])
    waiting = sink.commit(1, sink.prepare(1))
    until(lambda: caplog.text.count("waiting until it does") == 2)
    assert list(spout.read(10)) == []
    server.start()
    waiting.result(60)
    again, done = move(50)
    done.result(60)
    assert sorted(value for _, value in again) == list(range(50)), "what was not acknowledged comes again"
    spout.commit(spout.position())
    spout.close()
    sink.close()
    assert caplog.text.count("waiting until it does") == 2
    assert caplog.text.count("answers again") == 2
    assert {json.loads(body) for _, body in server.messages(there)} == set(range(-1, 50))
    assert server.ready(here) == 0


@pytest.mark.skipif(depth.PROFILE != "deep", reason="restarts the server; the rules are tested in unit/connectors")
def test_a_queue_that_takes_nothing_for_a_while_behind_a_restart_is_waited_for(server, caplog, monkeypatch):
    """As a stream, which has no leader yet when the server answers again: it drops what comes, and confirms it."""
    caplog.set_level(logging.WARNING)
    monkeypatch.setattr(link, "Waits", lambda: Waits(Backoff(most=0.05)))
    there = server.stream()
    sink = opened(RabbitMQSink(there, server.url))

    def write(first):
        sink.write([Row("k", n, 0.0, f"1:{n}") for n in range(first, first + 50)])
        return sink.commit(1, sink.prepare(1))

    write(0).result(60)
    server.stop()
    waiting = write(50)
    server.start()
    waiting.result(60)
    sink.close()
    assert caplog.text.count("no queue takes messages yet") <= 1  # it may have been quick
    assert server.in_stream(there) == [b"%d" % n for n in range(100)]
