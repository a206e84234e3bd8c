"""NatsSink against a real server: laws of the contract, what messages hold, and what is stored after a crash."""

from __future__ import annotations

import asyncio
import json
import logging
import uuid
from concurrent.futures import Future

import pytest

from esault import SinkError, Topology, TopologyError, TopologyFailed, run
from esault.connectors.nats.publisher import ID, takes
from esault.connectors.packed_messages import unpacked
from esault.sinks import NatsSink
from esault.sources import Items
from esault.testing.contract import check_sink
from esault.topology.context import Context
from esault.topology.sink import Row


def pairs(server, stream):
    return [(message.headers["Key"], json.loads(message.data)) for message in server.messages(stream)]


def written(server, stream, rows, **options):
    """Run rows into a stream, with checkpoints."""
    subject = options.pop("subject", f"{stream}.rows")

    def topology():
        t = Topology("into")
        t.spout("rows", Items(rows)).sink("out", NatsSink(stream, subject, server.url, **options))
        return t

    run(topology, engine="local", checkpoint=0.05, state=f"state-{uuid.uuid4().hex}", restart=True)
    return server.messages(stream)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_the_laws_of_a_sink_hold(server):
    salt = uuid.uuid4().hex[:8]

    def make(place):
        name = f"L-{salt}-{place.name}".replace(".", "_")
        made = NatsSink(name, f"{name}.rows", server.url, key_header="Key", declare=True)
        made.check()
        return made

    def read(place):
        return pairs(server, f"L-{salt}-{place.name}".replace(".", "_"))

    assert check_sink(make, read, order="key", parts=2) >= 7


def test_a_message_has_the_value_the_key_and_headers(server):
    stream = server.stream()
    rows = [("a", {"paid": 5}), (7, [1, "ä"]), (None, None)]
    found = written(server, stream, rows, key_header="Key", headers=lambda key, value: {"Kind": type(value).__name__})
    assert [(message.headers.get("Key"), json.loads(message.data)) for message in found] == [
        ("a", {"paid": 5}),
        ("7", [1, "ä"]),
        (None, None),
    ]
    assert [message.headers["Kind"] for message in found] == ["dict", "list", "NoneType"]
    assert len({message.headers[ID] for message in found}) == 3
    by_key = written(
        server, stream, [("x", "text")], subject=lambda key, value: f"{stream}.by.{key}", value_serializer="text"
    )
    assert (by_key[-1].subject, by_key[-1].data) == (f"{stream}.by.x", b"text")


class Opened:
    """A sink that is open in this process."""

    def __init__(self, server, stream, **options):
        self.sink = NatsSink(stream, f"{stream}.rows", server.url, key_header="Key", **options)
        context = Context("out", run="run", lineage="folder", logger=logging.getLogger("esault.nats.test"))
        self.sink.context = context
        self.sink.open(context)

    def prepared(self, *numbers):
        self.sink.write([Row("k", number, 0.0, f"r{number}") for number in numbers])
        handle = self.sink.prepare(1)
        return handle.result(20) if isinstance(handle, Future) else handle

    def commit(self, handle):
        return self.sink.commit(1, handle)


@pytest.fixture
def opened(server):
    every = []

    def open_one(stream, **options):
        every.append(Opened(server, stream, **options))
        return every[-1]

    yield open_one
    for each in every:
        each.sink.close()


def values(server, stream):
    return [json.loads(message.data) for message in server.messages(stream)]


def test_what_was_stored_is_not_stored_again_however_long_it_is_ago(server, opened):
    stream = server.stream(duplicate_window=0.1)
    first = opened(stream)
    whole = first.prepared(*range(10))
    server.send(stream, [("rows", b"-1")])  # of others, between
    assert values(server, stream) == [-1], "nothing is seen before the commit"
    _, *messages = unpacked(whole[1])
    for message in messages[:4]:  # a process that died in the middle
        server.send(stream, [("rows", message[1])], **{ID: message[2]})
    server.ask(lambda js: asyncio.sleep(0.3))
    second = opened(stream)
    second.commit(whole).result(20)
    assert values(server, stream) == [-1, *range(10)]
    second.commit(whole).result(20)
    assert values(server, stream) == [-1, *range(10)]
    later = second.prepared(10, 11)
    second.commit(later).result(20)
    first.commit(later).result(20)
    assert values(server, stream) == [-1, *range(12)]


def test_a_server_that_goes_away_while_it_stores_has_each_once(server, opened, caplog):
    stream = server.stream(duplicate_window=0.1)
    sink = opened(stream)
    done = sink.commit(sink.prepared(*range(8_000)))
    while server.ask(lambda js: js.stream_info(stream)).state.messages < 1000:
        pass
    server.stop()
    server.start()
    done.result(60)
    assert values(server, stream) == list(range(8_000))
    said = [record.message for record in caplog.records if record.name.startswith("esault.")]
    assert len(said) == 2 and "waits for the server" in said[0] and "goes on" in said[1]


def test_where_the_stream_has_forgotten_what_came_it_is_said(server, opened, caplog):
    stream = server.stream(duplicate_window=0.1)
    first = opened(stream)
    handle = first.prepared(1, 2)
    first.commit(handle).result(20)
    server.ask(lambda js: js.purge_stream(stream))
    server.ask(lambda js: asyncio.sleep(0.3))
    server.send(stream, [("rows", b"7")])
    first.commit(handle).result(20)
    assert values(server, stream) == [7, 1, 2]
    assert "the stream has removed messages that came since the checkpoint" in caplog.text


def test_a_stream_that_is_full_is_waited_for(server, opened, caplog):
    stream = server.stream(max_msgs=5, discard="new")
    sink = opened(stream)
    done = sink.commit(sink.prepared(*range(8)))
    while not caplog.records:
        pass
    assert "takes no messages (maximum messages exceeded)" in caplog.records[0].message and not done.done()
    assert values(server, stream) == [0, 1, 2, 3, 4]
    server.ask(lambda js: js.purge_stream(stream))
    done.result(20)
    assert values(server, stream) == [5, 6, 7]


@pytest.mark.parametrize("key", ["k", "k" * 500])
def test_a_message_that_is_too_large_with_its_headers_is_refused_before_the_checkpoint(server, opened, key):
    sink = opened(server.stream(), value_serializer="bytes").sink
    most = 1_048_576  # of data and headers, unless the server is set to more
    sink.write([Row(key, b"x" * (most - len(key) - 20), 0.0, "r1")])
    with pytest.raises(
        SinkError, match=r"a message of 1,048,\d+ bytes, headers among them, .*takes 1,048,576.*max_payload"
    ):
        sink.prepare(1).result(20)
    sink.write([Row(key, b"x" * (most - len(key) - 150), 0.0, "r2")])
    sink.commit(2, sink.prepare(2).result(20)).result(20)
    assert len(server.messages(sink.stream)) == 1


def test_a_message_that_ends_each_connection_is_not_sent_for_ever(server, opened, monkeypatch):
    monkeypatch.setattr(
        "esault.connectors.nats.sink.refuse_large", lambda *_: None
    )  # as in a checkpoint of an older version
    sink = opened(server.stream(), value_serializer="bytes").sink
    sink.write([Row("k", b"x" * 1_048_560, 0.0, "r1")])
    done = sink.commit(1, sink.prepare(1).result(20))
    with pytest.raises(SinkError, match="maximum payload.*; write smaller values, or raise max_payload"):
        done.result(20)


def test_a_subject_and_a_key_that_could_never_be_sent_are_refused_at_once(server, opened):
    stream = server.stream()
    by_key = NatsSink(stream, lambda key, value: f"{stream}.{key}", server.url)
    for key in ("k" * 4000, "ä" * 2000, "k\ud800"):
        with pytest.raises(SinkError, match=r"is no subject: return one of 4,000 bytes at most without blanks"):
            by_key.write([Row(key, 1, 0.0, "r")])
    long = opened(stream).sink
    long._subject = f"{stream}.{'k' * 3980}"
    long.write([Row("k", 1, 0.0, "r")])
    long.commit(1, long.prepare(1).result(20)).result(20)
    with pytest.raises(SinkError, match=r"is no text in UTF-8 for key_header='Key'"):
        long.write([Row("k\ud800", 1, 0.0, "r")])


def test_what_no_waiting_helps_ends_the_run_with_the_remedy(server):
    stream, other = server.stream(max_msg_size=100), server.stream()
    with pytest.raises(TopologyFailed, match="(?s)message size exceeds maximum.*raise max_msg_size"):
        written(server, stream, [("a", "x" * 200)])
    with pytest.raises(TopologyFailed, match="(?s)belongs to another stream"):
        written(server, stream, [("a", 1)], subject=lambda key, value: f"{other}.x")
    with pytest.raises(TopologyFailed, match="(?s)'nowhere.x' is none of the stream, which has"):
        written(server, stream, [("a", 1)], subject=lambda key, value: "nowhere.x")
    with pytest.raises(TopologyFailed, match="(?s)'a b', made of key 'a', is no subject"):
        written(server, stream, [("a", 1)], subject=lambda key, value: "a b")
    with pytest.raises(TopologyFailed, match="(?s)too large: the server takes.*max_payload"):
        written(server, other, [("a", "x" * 2_000_000)])


def test_what_is_amiss_is_said_before_anything_starts(server):
    stream = server.stream()

    def checked(name=stream, subject=f"{stream}.x", url=server.url):
        with pytest.raises(SinkError) as error:
            NatsSink(name, subject, url).check()
        assert "wonder" not in str(error.value)
        return str(error.value)

    NatsSink(stream, f"{stream}.x", server.url).check()
    assert f"has the subjects {stream}.>, and not 'else'" in checked(subject="else")
    assert "stream 'nope': stream not found; make it" in checked("nope", "nope.x")
    assert "give the right user and password" in checked(url=server.url.replace("wonder", "wrong"))
    assert "start the server" in checked(url="nats://127.0.0.1:1")
    deaf = server.stream(no_ack=True)
    assert "acknowledges nothing (no_ack)" in checked(deaf, f"{deaf}.x")
    NatsSink("made-here", "made.here", server.url, declare=True).check()
    NatsSink("made-here", "made.here", server.url).check()


@pytest.mark.parametrize(
    "options",
    [
        {"stream": "a.b"},
        {"stream": ""},
        {"subject": "a.*"},
        {"subject": ""},
        {"subject": "a..b"},
        {"headers": 5},
        {"key_header": ID},
        {"value_serializer": "x"},
        {"declare": True, "subject": lambda key, value: "x"},
        {"servers": "localhost"},
    ],
)
def test_wrong_arguments_are_refused(options):
    with pytest.raises(TopologyError, match="NatsSink"):
        NatsSink(**{"stream": "s", "subject": "s", **options})


def test_a_stream_takes_what_its_subjects_match():
    assert takes(["a.*", "b.>"], "a.x") and takes(["a.*", "b.>"], "b.x.y") and takes(["a"], "a") and takes([">"], "a.b")
    assert not takes(["a.*", "b.>"], "a.x.y") and not takes(["b.>"], "b") and not takes([], "a")
