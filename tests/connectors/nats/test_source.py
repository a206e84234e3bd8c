"""NatsSource against a real server: laws of the contract, where it begins and ends, and what was removed unread."""

from __future__ import annotations

import json
import logging
import re
import time

import pytest

from esault import SourceError, TopologyError
from esault.connectors.nats.source import overlap
from esault.connectors.waits import Waits
from esault.sources import NatsSource
from esault.testing.contract import check_spout
from esault.topology.context import Context
from esault.topology.spout import EndOfStream


class Opened:
    """A source that is open, and a reader of one of its splits."""

    def __init__(self, source, split=None, position=None):
        self.source = source
        source.context = Context("src", logger=logging.getLogger("esault.nats.test"))
        source.open(source.context)
        self.reader = source.open_split(split or source.splits()[0], position)
        self.values, self.closed = [], False

    def until(self, done, most=1 << 30):
        """Read until `done` returns true."""
        deadline = time.monotonic() + 20
        while not done():
            assert time.monotonic() < deadline, self.values
            rows = self.reader.read(min(7, most - len(self.values)))
            self.values += [value for _, value in rows]
            if not rows:
                time.sleep(0.002)
        return self.values

    def take(self, count):
        """Return the values of so many rows."""
        self.values = []
        self.until(lambda: len(self.values) >= count, count)
        return self.values

    def rest(self):
        """Return the values up to the end."""
        self.values = []
        with pytest.raises(EndOfStream):
            self.until(lambda: False)
        return self.values

    def close(self):
        """Close both, and return the position."""
        position = self.reader.position()
        if not self.closed:
            self.closed = True
            self.reader.close()
            self.source.close()
        return position


@pytest.fixture
def opened():
    """Opens readers, and closes them with the test."""
    every = []

    def open_one(source, split=None, position=None):
        every.append(Opened(source, split, position))
        return every[-1]

    yield open_one
    for each in every:
        each.close()


def numbered(count, first=0, subjects=2):
    return [(str(n % subjects), b"%d" % n) for n in range(first, first + count)]


@pytest.mark.parametrize("parted", [False, True])
def test_the_laws_of_a_source_hold(server, parted):
    stream = server.stream(*numbered(24))
    subjects = [f"{stream}.0", f"{stream}.1"] if parted else None
    # A read does not wait for the server, so many give nothing before the first message is there.
    made = lambda: NatsSource(stream, server.url, subjects=subjects, until="end")
    assert check_spout(made, idle=10**9, positions=4) == 24


def test_it_begins_and_ends_where_it_is_told(server, opened):
    stream = server.stream(*numbered(20))
    new = opened(NatsSource(stream, server.url, start="new"))
    end = opened(NatsSource(stream, server.url, until="end"))
    message = server.messages(stream)[12]
    server.send(stream, numbered(5, 20))
    assert end.rest() == list(range(20))
    assert new.take(5) == list(range(20, 25))
    assert opened(NatsSource(stream, server.url, start=15, until="end")).rest() == list(range(14, 25))
    at = message.metadata.timestamp.timestamp() - 1e-6
    found = opened(NatsSource(stream, server.url, start_time=at, until="end")).rest()
    assert found[-1] == 24 and 12 in found and len(found) < 25
    assert opened(NatsSource(stream, server.url, start_time=time.time() + 60, until="end")).rest() == []
    position = new.close()
    assert opened(NatsSource(stream, server.url, until="end"), position=position).rest() == []
    with pytest.raises(SourceError, match="its last message has the sequence 25; correct start"):
        opened(NatsSource(stream, server.url, start=100))


def test_it_has_caught_up_when_all_that_was_there_has_been_read(server, opened):
    table = opened(NatsSource(server.stream(*numbered(20)), server.url))
    assert not table.reader.caught_up()
    assert table.take(12) == list(range(12)) and not table.reader.caught_up()
    assert table.take(8) == list(range(12, 20))
    table.until(table.reader.caught_up)


def test_what_stands_beside_the_value_comes_on_request(server, opened):
    stream = server.stream()
    server.send(stream, [("eu.1", b'{"a": 1}')], who="ann")
    source = opened(NatsSource(stream, server.url, key="who", metadata=True))
    source.until(lambda: source.values)
    (value,) = source.values
    assert abs(value.pop("timestamp") - time.time()) < 60
    assert value == {
        "value": {"a": 1},
        "subject": f"{stream}.eu.1",
        "sequence": 1,
        "headers": {"who": "ann"},
        "stream": stream,
    }
    reader = opened(NatsSource(stream, server.url, deserializer="bytes", subjects=f"{stream}.eu.*")).reader
    rows = []
    while not rows:
        rows = reader.read(5)
    assert rows == [(f"{stream}.eu.1", b'{"a": 1}')]
    assert len(reader.row_ids()) == 1


def test_messages_larger_than_a_request_come_and_the_buffer_has_an_end(server, opened, monkeypatch):
    from esault.connectors.nats import consumer

    monkeypatch.setattr(consumer, "_BYTES", 4000)
    monkeypatch.setattr(consumer, "_BATCH", 50)
    monkeypatch.setattr(consumer, "_FULL", 60)
    sizes = [10, 5000, 20, 6000, 9000, 30] * 30
    stream = server.stream(*[("0", b"x" * size) for size in sizes])
    whole = opened(NatsSource(stream, server.url, deserializer=len))
    assert whole.take(len(sizes)) == sizes
    assert opened(NatsSource(stream, server.url, deserializer=len, until="end")).rest() == sizes
    many = server.stream(*numbered(500))
    slow = opened(NatsSource(many, server.url))
    slow.take(1)
    assert len(slow.reader._consumer.waiting) < 120
    assert slow.take(499) == list(range(1, 500)) and slow.reader.lag() == 0


def test_messages_that_were_removed_unread_are_counted(server, opened, caplog):
    stream = server.stream(*numbered(100))

    def remove(*sequences, before=None):
        async def work(js):
            for sequence in sequences:
                await js.delete_msg(stream, sequence)
            if before is not None:
                await js.purge_stream(stream, seq=before)

        server.ask(work)

    remove(5, 50, before=11)
    first = opened(NatsSource(stream, server.url))
    assert first.take(20) == list(range(10, 30)), "what was gone before is not lost"
    position = first.close()
    server.send(stream, numbered(20, 100))
    remove(105, before=61)
    second = opened(NatsSource(stream, server.url), position=position)
    assert second.take(59) == [n for n in range(60, 120) if n != 104]
    # sequences 31 to 60 but for 50, which was gone when the stream was read first, and 105
    assert second.reader.counters() == {"messages_removed_unread": 30}
    assert "29 messages from sequence 31 on were removed" in caplog.text
    fails = opened(NatsSource(stream, server.url, on_removed="fail"), position=position)
    with pytest.raises(SourceError, match='removed before they were read.*on_removed="warn"'):
        fails.take(1)
    filtered = opened(NatsSource(stream, server.url, subjects=f"{stream}.1"), position=position)
    assert filtered.take(30) == list(range(61, 120, 2))
    assert filtered.reader.counters() == {}
    assert "30 messages of all subjects before sequence 61 were removed, and some of this one" in caplog.text


def test_a_quiet_subject_goes_with_its_stream_so_that_nothing_is_taken_for_lost(server, opened, monkeypatch, caplog):
    from esault.connectors.nats import consumer

    monkeypatch.setattr(consumer, "_LOOK_EVERY", 0.02)
    stream = server.stream(*numbered(10))
    quiet = opened(NatsSource(stream, server.url, subjects=f"{stream}.quiet"))
    quiet.until(lambda: quiet.reader.position()[0] == 11)
    server.ask(lambda js: js.purge_stream(stream))
    server.send(stream, [("quiet", b"7")])
    assert quiet.take(1) == [7] and not caplog.records


def test_a_stream_that_was_made_anew_is_said_and_read(server, opened, caplog):
    stream = server.stream(*numbered(10))
    reader = opened(NatsSource(stream, server.url))
    assert reader.take(10) == list(range(10))
    before = reader.reader.row_ids()
    position = reader.close()
    server.ask(lambda js: js.delete_stream(stream))
    server.stream(*numbered(3, 50), name=stream)
    anew = opened(NatsSource(stream, server.url), position=position)
    assert anew.take(3) == [50, 51, 52]
    assert not set(anew.reader.row_ids()) & set(before)
    assert len([record for record in caplog.records if "made anew" in record.message]) == 1
    fails = opened(NatsSource(stream, server.url, on_removed="fail"), position=position)
    with pytest.raises(SourceError, match="deleted and made anew"):
        fails.take(1)


def test_a_stream_that_is_deleted_while_it_is_read_ends_the_run(server, opened, monkeypatch):
    monkeypatch.setattr(Waits, "next", lambda self: 0.01)
    stream = server.stream(*numbered(3))
    reader = opened(NatsSource(stream, server.url))
    reader.take(3)
    server.ask(lambda js: js.delete_stream(stream))
    with pytest.raises(SourceError, match="stream not found; make it"):
        reader.take(1)


def test_a_message_that_cannot_be_read_fails_or_is_counted(server, opened, caplog):
    stream = server.stream(("0", b"1"), ("0", b"no json"), ("0", b"3"))
    with pytest.raises(SourceError, match=f"stream '{stream}', sequence 2 .*JSONDecodeError.*on_bad_message"):
        opened(NatsSource(stream, server.url)).take(3)
    skips = opened(NatsSource(stream, server.url, on_bad_message="skip"))
    assert skips.take(2) == [1, 3] and skips.reader.counters() == {"bad_messages_skipped": 1}
    assert re.search(
        r"sequence 2 .*: JSONDecodeError: .* \(the message is left out; further ones are only", caplog.text
    )


def test_what_is_amiss_is_said(server):
    stream = server.stream()

    def checked(url=server.url, name=stream, **options):
        with pytest.raises(SourceError) as error:
            NatsSource(name, url, **options).check()
        assert "wonder" not in str(error.value)
        return str(error.value)

    NatsSource(stream, server.url).check()
    assert "stream 'nope': stream not found; make it (nats stream add)" in checked(name="nope")
    assert "give the right user and password" in checked(server.url.replace("wonder", "wrong"))
    assert "start the server, or mend servers=127.0.0.1:1" in checked("nats://alice:wonder@127.0.0.1:1")
    assert "with JetStream: nats-server -js, or correct domain" in checked(domain="nowhere")
    work = server.stream(retention="workqueue")
    assert "has the retention 'workqueue': what is read is gone there" in checked(name=work)


@pytest.mark.parametrize(
    "options",
    [
        {"streams": ""},
        {"streams": []},
        {"streams": "a.b"},
        {"streams": ["a", "a"]},
        {"subjects": []},
        {"subjects": ["a.*", "a.b"]},
        {"start": "x"},
        {"start": 0},
        {"start": True},
        {"start_time": "x"},
        {"until": "x"},
        {"deserializer": 5},
        {"on_bad_message": "x"},
        {"on_removed": "x"},
        {"servers": "localhost"},
        {"servers": []},
    ],
)
def test_wrong_arguments_are_refused(options):
    with pytest.raises(TopologyError, match="NatsSource"):
        NatsSource(**{"streams": "s", **options})


def test_subjects_overlap_where_one_matches_both():
    assert overlap("a.*", "a.b") and overlap("a.>", "a.b.c") and overlap("*.b", "a.*") and overlap(">", "a")
    assert not overlap("a.*", "a.b.c") and not overlap("a.b", "a.c") and not overlap("a.b", "a.b.>")


def test_a_server_that_is_away_gives_no_rows_until_it_is_back(server, opened, caplog):
    stream = server.stream(*numbered(10))
    own = f"localhost:{server.port}"  # readers of tests before may still be there
    reader = opened(NatsSource(stream, server.url.replace("127.0.0.1", "localhost")))
    assert reader.take(10) == list(range(10))
    server.stop()
    reader.until(lambda: own in caplog.text)
    server.start()
    server.send(stream, numbered(10, 10))
    assert reader.take(10) == list(range(10, 20))
    waits = [each.message.partition(" the server")[0] for each in caplog.records if own in each.message]
    assert waits == ["NatsSource waits for", "NatsSource goes on:"]
    assert json.dumps(reader.reader.position())
