"""RedisSource against a real server: laws of the contract, where it begins and ends, and what was removed unread."""

from __future__ import annotations

import logging
import uuid

import pytest

from esault import SourceError, TopologyError
from esault.connectors.redis.entries import Entries
from esault.sources import RedisSource
from esault.testing.contract import check_spout
from esault.topology.context import Context
from esault.topology.spout import EndOfStream


@pytest.fixture
def stream(server):
    return f"r-{uuid.uuid4().hex[:10]}"


def fill(server, stream, count, first=0):
    with server.client.pipeline() as pipeline:
        for number in range(first, first + count):
            pipeline.xadd(stream, {"n": number, "k": f"k{number % 3}"})
        return pipeline.execute()


def opened(source, stream, position=None, added=False):
    source.open(Context("src", logger=logging.getLogger("esault.redis.test")))
    return source.open_added_split(stream) if added else source.open_split(stream, position)


def numbers(rows):
    return [int(value["n"]) for _, value in rows]


def rest(reader, limit=7):
    found = []
    while True:
        try:
            rows = reader.read(limit)
        except EndOfStream:
            return numbers(found)
        if not rows and reader.position()[1] is None:
            return numbers(found)
        assert len(reader.row_ids()) == len(rows) <= limit
        found += rows


@pytest.mark.parametrize("until", [None, "end"])
def test_the_laws_of_a_source_hold(server, stream, until):
    for part in range(3):
        fill(server, f"{stream}-{part}", 8)
    names = [f"{stream}-{part}" for part in range(3)]
    assert check_spout(lambda: RedisSource(names, server.url, until=until), idle=3) == 24


def test_the_laws_hold_where_streams_are_added(server, stream):
    for part in range(2):
        fill(server, f"{stream}-{part}", 8)

    def grow():
        fill(server, f"{stream}-more", 3)

    assert check_spout(lambda: RedisSource(f"{stream}-*", server.url, every=0.1), idle=3, grow=grow) == 16


def test_a_value_is_the_fields_and_the_key_one_of_them_or_the_stream(server, stream):
    (id, *_) = fill(server, stream, 2)
    assert opened(RedisSource(stream, server.url), stream).read(1) == [(stream, {"n": "0", "k": "k0"})]
    assert opened(RedisSource(stream, server.url, key="k"), stream).read(1)[0][0] == "k0"
    assert opened(RedisSource(stream, server.url, key="x"), stream).read(1)[0][0] is None
    found = opened(RedisSource(stream, server.url, encoding=None, metadata=True, key="k"), stream).read(1)
    stamp = int(id.partition("-")[0]) / 1000
    value = {"fields": {"n": b"0", "k": b"k0"}, "id": id, "timestamp": stamp, "stream": stream}
    assert found == [(b"k0", value)]


def test_it_begins_and_ends_where_it_is_told(server, stream):
    ids = fill(server, stream, 20)
    source = RedisSource(stream, server.url, until="end")
    reader = opened(source, stream)
    latest = opened(RedisSource(stream, server.url, start="latest"), stream)
    behind = opened(RedisSource(stream, server.url, start=ids[14]), stream)
    fill(server, stream, 5, 20)
    assert rest(reader) == list(range(20))
    assert rest(latest) == list(range(20, 25))
    assert rest(behind) == list(range(15, 25))
    assert rest(opened(RedisSource(stream, server.url, start="latest"), stream, added=True)) == list(range(25))


def test_a_stream_that_is_missing_is_waited_for(server, stream):
    reader = opened(RedisSource(stream, server.url, start="latest"), stream)
    assert reader.read(5) == []
    fill(server, stream, 3)
    assert rest(reader) == [0, 1, 2]
    assert rest(opened(RedisSource(f"{stream}-none", server.url, until="end"), f"{stream}-none")) == []


def test_entries_that_were_trimmed_before_they_were_read_are_counted(server, stream, caplog):
    fill(server, stream, 100)
    server.client.xtrim(stream, maxlen=90, approximate=False)
    reader = opened(RedisSource(stream, server.url), stream)
    assert numbers(reader.read(20)) == list(range(10, 30)), "what was gone before is not lost"
    server.client.xtrim(stream, maxlen=50, approximate=False)
    server.client.xdel(stream, server.client.xrange(stream, count=10)[9][0])
    position = reader.position()
    assert numbers(reader.read(5)) == list(range(50, 55))
    assert reader.counters() == {"entries_removed_unread": 21}  # 20, and one that was removed further behind
    assert "21 entries behind" in caplog.text
    assert rest(reader) == [n for n in range(55, 100) if n != 59]
    assert reader.counters() == {"entries_removed_unread": 21}
    assert reader.lag() == 0
    fill(server, stream, 10, 100)
    server.client.xtrim(stream, maxlen=0, approximate=False)
    assert reader.read(5) == [] and reader.counters() == {"entries_removed_unread": 31}
    fails = opened(RedisSource(stream, server.url, on_trimmed="fail"), stream, position)
    with pytest.raises(SourceError, match="80 entries behind .* removed before they were read"):
        fails.read(5)


def test_behind_an_id_they_are_counted_once_it_has_caught_up(server, stream):
    ids = fill(server, stream, 20)
    reader = opened(RedisSource(stream, server.url, start=ids[9]), stream)
    assert rest(reader) == list(range(10, 20))
    fill(server, stream, 10, 20)
    server.client.xtrim(stream, maxlen=4, approximate=False)
    assert rest(reader) == list(range(26, 30))
    assert reader.counters() == {"entries_removed_unread": 6}


@pytest.mark.parametrize("counts", [True, False])
def test_it_has_caught_up_when_all_that_was_there_has_been_read(server, stream, monkeypatch, counts):
    fill(server, stream, 20)
    asked = Entries._asked

    def of_an_older_server(self, pipeline):
        info, answer = asked(self, pipeline)
        return {name: each for name, each in info.items() if name != "entries-added"}, answer

    if not counts:  # before Redis 7
        monkeypatch.setattr(Entries, "_asked", of_an_older_server)
    reader = opened(RedisSource(stream, server.url), stream)
    assert not reader.caught_up()
    assert numbers(reader.read(7)) == list(range(7)) and not reader.caught_up()
    assert rest(reader) == list(range(7, 20)) and reader.caught_up()


def test_a_stream_that_was_made_anew_is_said_once_and_read(server, stream, caplog):
    fill(server, stream, 10)
    reader = opened(RedisSource(stream, server.url), stream)
    assert len(rest(reader)) == 10
    server.client.delete(stream)
    assert reader.read(5) == [] and reader.read(5) == []
    fill(server, stream, 3, 50)
    assert rest(reader) == [50, 51, 52]
    assert len([record for record in caplog.records if "made anew" in record.message]) == 1


def test_what_is_amiss_is_said(server, stream):
    def checked(url, *streams, **options):
        with pytest.raises(SourceError) as error:
            RedisSource(streams, url, **options).check()
        return str(error.value)

    RedisSource(stream, server.url).check()
    server.client.set("a-text", "x")
    assert "'a-text' is a string, no stream" in checked(server.url, "a-text")
    assert f"there is no stream '{stream}'" in checked(server.url, stream, until="end")
    assert "no stream matches" in checked(server.url, f"{stream}*", until="end")
    assert "give the right user and password" in checked(server.url.replace("wonder", "wrong"), stream)
    assert "start the server" in checked("redis://:wonder@127.0.0.1:1/0", stream)
    server.client.xadd(stream, {"raw": b"\xff"})
    with pytest.raises(SourceError, match="entry .* can't decode byte .* encoding=None"):
        opened(RedisSource(stream, server.url), stream).read(1)


@pytest.mark.parametrize(
    "options",
    [
        {"streams": ""},
        {"streams": []},
        {"start": "x"},
        {"start": 5},
        {"until": "x"},
        {"every": 0},
        {"encoding": "x"},
        {"on_trimmed": "x"},
    ],
)
def test_wrong_arguments_are_refused(options):
    with pytest.raises(TopologyError, match="RedisSource"):
        RedisSource(**{"streams": "s", **options})


def test_a_server_that_is_away_gives_no_rows_until_it_is_back(server, stream, caplog):
    fill(server, stream, 10)
    source = RedisSource([stream, f"{stream}-*"], server.url)
    now = [0.0]
    source._client._clock = lambda: now[0]
    reader = opened(source, stream)
    assert list(source.splits()) == [stream]
    assert len(reader.read(5)) == 5
    server.stop()
    assert reader.read(5) == [] == reader.row_ids() and list(source.splits()) == [stream]
    now[0] += 5
    assert reader.read(5) == []
    server.start()
    assert reader.read(5) == []  # it asks once a second
    now[0] += 5
    assert numbers(reader.read(5)) == list(range(5, 10))
    waits = [record.message.partition(":")[0] for record in caplog.records]
    assert waits == ["RedisSource waits for the server", "RedisSource goes on"]


def test_a_stream_of_a_name_that_is_no_text_is_left_out_and_said(server, stream, caplog):
    odd = stream.encode() + b"\xff"
    fill(server, stream, 3)
    server.client.xadd(odd, {"n": 1})
    source = RedisSource(f"{stream}*", server.url, until="end")
    source.check()
    source.open(Context("src", logger=logging.getLogger("esault.redis.test")))
    assert source.splits() == source.splits() == [stream]
    assert [record.message for record in caplog.records if "no UTF-8" in record.message] == [
        f"RedisSource: stream {odd!r} is left out: its name is no UTF-8, so it cannot be a key; rename it"
    ]
    source.close()
