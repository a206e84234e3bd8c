"""RabbitMQStreamSink against a real server: laws of the contract, what the server drops, and what is refused or waited for."""

from __future__ import annotations

import logging
import time
import uuid
from urllib.parse import urlsplit

import pytest
from tcp_proxy import Proxy

from esault.connectors.packed_messages import unpacked
from esault.errors import SinkError, TopologyError
from esault.sinks import RabbitMQStreamSink
from esault.sources import RabbitMQStreamSource
from esault.testing.contract import check_sink
from esault.topology.context import Context
from esault.topology.sink import Row
from esault.topology.spout import EndOfStream


@pytest.fixture
def url(server):
    return at(server, server.stream_port)


def at(server, port):
    user = urlsplit(server.url)
    return f"rabbitmq-stream://{user.username}:{user.password}@127.0.0.1:{port}/%2F"


def stream_of(server):
    return server.stream(name=f"s-{uuid.uuid4().hex[:12]}")


def held(server, *streams, metadata=False):
    """What streams hold, as (key, value)."""
    found = []
    for stream in streams:
        source = RabbitMQStreamSource(stream, server.url, until="end", metadata=metadata)
        source.open(Context("read"))
        reader = source.open_split(stream, None)
        with pytest.raises(EndOfStream):
            while True:
                rows = reader.read(1000)
                found += rows
                if not rows:
                    time.sleep(0.005)
        reader.close()
        source.close()
    return found


def opened(sink, said=None):
    logger = logging.getLogger(f"esault.{uuid.uuid4().hex}")
    if said is not None:
        logger.warning = said.append  # type: ignore[method-assign]
    sink.open(Context("out", run="run", lineage="folder", logger=logger))
    return sink


def prepared(sink, *values, epoch=1):
    sink.write([Row(f"k{value % 3}", value, 0.0) for value in values])
    return sink.prepare(epoch).result(60)


def test_the_laws_of_a_sink_hold(server, url):
    own = uuid.uuid4().hex[:8]

    def make(place):
        sink = RabbitMQStreamSink(f"{place.name}-{own}", url, declare=True)
        sink.check()  # as the driver does: it makes the stream
        return sink

    def read(place):
        make(place)
        return held(server, f"{place.name}-{own}")

    assert check_sink(make, read) >= 7


def test_a_message_has_key_headers_and_kind(server, url):
    stream = stream_of(server)
    sink = opened(RabbitMQStreamSink(stream, url, headers=lambda key, value: {"from": f"{key}/{value['n']}"}))
    sink.write([Row("ann", {"n": 1}, 0.0), Row(None, {"n": 2}, 0.0)])
    sink.commit(1, sink.prepare(1).result(60)).result(60)
    sink.close()
    (key, first), (_, second) = held(server, stream, metadata=True)
    assert key == first["routing_key"] == "ann"
    assert (first["value"], first["headers"]["from"]) == ({"n": 1}, "ann/1")
    assert second["value"] == {"n": 2}


def test_what_another_process_publishes_again_is_dropped(server, url):
    stream = stream_of(server)
    first = opened(RabbitMQStreamSink(stream, url))
    handles = [prepared(first, *range(n, n + 10), epoch=n) for n in (0, 10, 20)]
    first.commit(0, handles[0]).result(60)
    # the second is half published when its process dies
    reference, ((_, number, messages),) = unpacked(handles[1][1])
    first._publisher.publish(stream, reference, number, messages[:4]).result(60)
    first.close()
    for _ in range(2):
        other = opened(RabbitMQStreamSink(stream, url))
        for epoch, handle in enumerate(handles):
            other.commit(epoch, handle).result(60)
        other.close()
    assert [value for _, value in held(server, stream)] == list(range(30))


def test_rows_of_a_key_go_to_one_of_several_streams_in_order(server, url):
    streams = [stream_of(server) for _ in range(3)]
    sink = opened(RabbitMQStreamSink(streams, url))
    sink.commit(1, prepared(sink, *range(60))).result(60)
    sink.close()
    found = {stream: held(server, stream) for stream in streams}
    assert sorted(value for rows in found.values() for _, value in rows) == list(range(60))
    homes = {key: {stream for stream, rows in found.items() if key in dict(rows)} for key in ("k0", "k1", "k2")}
    assert all(len(each) == 1 for each in homes.values())
    for rows in found.values():
        for key in ("k0", "k1", "k2"):
            mine = [value for each, value in rows if each == key]
            assert mine == sorted(mine)
    routed = opened(RabbitMQStreamSink(streams, url, route=lambda key, value: "elsewhere"))
    with pytest.raises(SinkError, match="names 'elsewhere'; it must be one of"):
        routed.write([Row("k", 1, 0.0)])


def test_a_server_that_is_away_is_waited_for_and_nothing_doubled(server):
    door, said = Proxy(server.stream_port), []
    door.open()
    stream = stream_of(server)
    sink = opened(RabbitMQStreamSink(stream, at(server, door.port)), said)
    sink.commit(1, prepared(sink, *range(1000))).result(60)
    waits = [sink.commit(2, prepared(sink, *range(1000, 30_000)))]
    door.shut()
    waits.append(sink.commit(3, prepared(sink, *range(30_000, 30_010))))
    assert not waits[-1].done()
    door.open()
    for wait in waits:
        wait.result(120)
    sink.close()
    door.shut()
    assert [value for _, value in held(server, stream)] == list(range(30_010))
    assert [line.partition(":")[0] for line in said] == ["waits for the server", "goes on"]


def test_what_is_wrong_is_said_with_the_remedy(server, url):
    with pytest.raises(SinkError, match="stream 'nothing': there is no such stream: make it, say declare=True"):
        RabbitMQStreamSink("nothing", url).check()
    stream = stream_of(server)
    with pytest.raises(SinkError, match="refuses the user: correct user and password in url"):
        RabbitMQStreamSink(stream, url.replace("wonder", "no")).check()
    with pytest.raises(SinkError, match="the user has no access to this virtual host"):
        RabbitMQStreamSink(stream, url.replace("%2F", "elsewhere")).check()
    with pytest.raises(SinkError, match="does not answer .* .rabbitmq-plugins enable rabbitmq_stream"):
        RabbitMQStreamSink(stream, at(server, 1)).check()
    with pytest.raises(SinkError, match=r"does not answer \(.*SSL"):
        RabbitMQStreamSink(stream, url.replace("rabbitmq-stream:", "rabbitmq-stream+tls:")).check()
    with pytest.raises(TopologyError, match='write "rabbitmq-stream://user:password@host:5552'):
        RabbitMQStreamSink(stream, server.url)
    sink = opened(RabbitMQStreamSink(stream, url))
    sink.write([Row("k", "x" * 3_000_000, 0.0)])
    handle = sink.prepare(1).result(60)
    with pytest.raises(SinkError, match="stream.frame_max"):
        sink.commit(1, handle).result(60)
    gone = stream_of(server)
    late = opened(RabbitMQStreamSink(gone, url))
    handle = prepared(late, 1)
    with server.channel() as channel:
        channel.queue_delete(gone)
    with pytest.raises(SinkError, match="there is no such stream"):
        late.commit(1, handle).result(60)
    sink.close()
    late.close()
