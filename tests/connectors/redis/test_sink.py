"""RedisSink against a real server: laws of the contract, what entries hold, and what is refused."""

from __future__ import annotations

import json
import logging
import uuid

import pytest
import redis_server

from esault import SinkError, Topology, TopologyError, TopologyFailed, run
from esault.connectors.redis.staging import Staging
from esault.sinks import RedisSink
from esault.sources import Items
from esault.testing.contract import check_sink
from esault.topology.sink import RunInfo


def named():
    return f"s-{uuid.uuid4().hex[:10]}"


def written(server, rows, checkpoint=0.05, **options):
    """Run rows into a new stream, and return its name."""
    stream = options.pop("stream", None) or named()

    def topology():
        t = Topology("into")
        t.spout("rows", Items(rows)).sink("out", RedisSink(stream, server.url, **options))
        return t

    state = f"state-{named()}" if checkpoint else None
    run(topology, engine="local", checkpoint=checkpoint, state=state, restart=bool(checkpoint))
    return stream


@pytest.fixture
def entries(server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return server.entries


def test_the_laws_of_a_sink_hold(server):
    salt = named()

    def read(place):
        return [(fields["key"], json.loads(fields["value"])) for fields in server.entries(f"{salt}-{place.name}")]

    def make(place):
        return RedisSink(f"{salt}-{place.name}", server.url)

    assert check_sink(make, read, order="none", parts=2) >= 7


def test_an_entry_has_the_key_and_the_value_as_json(server, entries):
    rows = [("a", {"cents": 5, "paid": True}), (7, [1, "ä"]), (None, None)]
    assert entries(written(server, rows)) == [
        {"key": "a", "value": '{"cents": 5, "paid": true}'},
        {"key": "7", "value": '[1, "ä"]'},
        {"value": "null"},
    ]
    assert entries(written(server, [("a", "x")], key_field=None, value_field="v", value_serializer="text")) == [
        {"v": "x"}
    ]


def test_a_dict_is_the_fields_if_that_is_asked_for(server, entries):
    rows = [("a", {"n": 1, "text": "ä", "raw": b"\x41", "none": None, "list": [1, 2]})]
    assert entries(written(server, rows, value_field=None)) == [
        {"key": "a", "n": "1", "text": "ä", "raw": "A", "list": "[1, 2]"}
    ]


def test_rows_of_many_pieces_stay_in_order(server, entries):
    rows = [(f"k{n}", "x" * 900) for n in range(3000)]
    found = entries(written(server, rows))
    assert [fields["key"] for fields in found] == [key for key, _ in rows]


def test_without_checkpoints_rows_are_there_as_well_and_nothing_stays_behind(server, entries):
    before = {*server.client.keys("esault:*")}
    stream = written(server, [(f"k{n}", n) for n in range(100)], checkpoint=None)
    assert sorted(int(fields["value"]) for fields in entries(stream)) == list(range(100))
    assert {*server.client.keys("esault:*")} == before


def test_what_tells_a_run_where_to_go_on_goes_a_day_after_it_has_drained_and_stays_while_it_goes_on(server, entries):
    before = {*server.client.keys("esault:*")}
    stream = written(server, [("a", 1)])
    left = {*server.client.keys("esault:*")} - before
    assert len(left) == 2 and all(0 < server.client.ttl(name) <= 86_400 for name in left)
    assert len(entries(stream)) == 1
    lineage = left.pop().split(":")[1]
    sink = RedisSink(stream, server.url)
    sink.begin(RunInfo("r", "into", "out", False, lineage))  # as with --restart: the folder's lineage stays
    assert {server.client.ttl(name) for name in {*server.client.keys("esault:*")} - before} == {-1}
    sink.end(False)
    assert {server.client.ttl(name) for name in {*server.client.keys("esault:*")} - before} == {-1}


def test_replace_deletes_the_stream_when_a_run_begins_anew_and_maxlen_trims_it(server, entries):
    stream = written(server, [("a", 1)])
    written(server, [("b", 2)], stream=stream)
    assert len(entries(stream)) == 2
    written(server, [(None, n) for n in range(1000)], stream=stream, mode="replace", maxlen=100)
    assert 100 <= len(entries(stream)) < 300
    assert {*entries(stream)[-1]} == {"value"}


def test_a_server_that_has_lost_what_was_staged_is_an_error_and_a_name_that_was_moved_is_none(server):
    sink = RedisSink(named(), server.url)
    sink.begin(RunInfo("r", "t", "out", False, "lineage-lost"))
    staging = Staging(sink.stream, "lineage-lost", "out", None)
    name = staging.stage(server.client, [[b"f", b"1"]])
    sink.commit_all(1, [[name]])
    sink.commit_all(1, [[name]])
    assert server.entries(sink.stream) == [{"f": "1"}]
    staged = staging.stage(server.client, [[b"f", b"2"]])
    server.client.delete(staged)  # as a server that came back from a snapshot, which knows the run and not these rows
    with pytest.raises(SinkError, match="lost what was staged.*appendonly yes"):
        sink.commit_all(2, [[staged]])
    server.client.delete(staging.names, staging.moved)
    with pytest.raises(SinkError, match="lost what was staged.*appendonly yes"):
        sink.commit_all(1, [[name]])
    assert server.entries(sink.stream) == [{"f": "1"}]
    sink.end(False)


def test_a_run_goes_on_without_what_the_server_has_lost_where_that_is_said(server, tmp_path, caplog):
    """As `--resume` alone would not: it commits the checkpoint again, and finds the same."""
    stream = named()

    def topology(on_lost):
        t = Topology("lost")
        rows = Items([("k", n) for n in range(20)])
        t.spout("rows", rows).sink("out", RedisSink(stream, server.url, on_lost=on_lost))
        return t

    plain = Staging.move

    def loses(staging, connection, names):  # the server is killed in the middle of the first commit
        connection.delete(*names)
        return plain(staging, connection, names)

    options = {"engine": "local", "checkpoint": 0.01, "state": str(tmp_path / "state")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Staging, "move", loses)
        with pytest.raises(TopologyFailed, match='on_lost="warn" and --resume'):
            run(lambda: topology("fail"), **options)
    with pytest.raises((TopologyFailed, SinkError), match='on_lost="warn" and --resume'):
        run(lambda: topology("fail"), resume=True, **options)
    with caplog.at_level(logging.WARNING):
        run(lambda: topology("warn"), resume=True, **options)
    assert "rows of one checkpoint are missing" in caplog.text
    left = [int(entry["value"]) for entry in server.entries(stream)]
    assert left == list(range(20))[20 - len(left) :]


def test_what_another_sink_of_the_same_run_has_staged_stays(server):
    stream = named()
    one, other = (Staging(stream, "lineage-two", unit, None) for unit in ("one", "other"))
    mine, theirs = (each.stage(server.client, [[b"f", b"1"]]) for each in (one, other))
    sink = RedisSink(stream, server.url)
    sink.begin(RunInfo("r", "t", "one", False, "lineage-two"))
    sink.forget_staged([])
    assert not server.client.exists(mine) and server.client.exists(theirs)
    sink.end(False)


def checked(url, stream="nothing-yet"):
    with pytest.raises(SinkError) as error:
        RedisSink(stream, url).check()
    assert "wonder" not in str(error.value)
    return str(error.value)


def test_what_is_amiss_is_said_before_anything_starts(server, caplog):
    RedisSink("nothing-yet", server.url).check()
    server.client.set("a-text", "x")
    assert "'a-text' is a string, no stream" in checked(server.url, "a-text")
    assert "give the right user and password" in checked(server.url.replace("wonder", "wrong"))
    assert "give the right user and password" in checked(server.url.replace(":wonder@", ""))
    assert "name another database" in checked(server.url.replace("/0", "/99"))
    assert "start the server" in checked("redis://:wonder@127.0.0.1:1/0")
    assert "write redis://" in checked("http://127.0.0.1:1/0")
    server.client.config_set("maxmemory-policy", "allkeys-lru")
    assert "set it to noeviction" in checked(server.url)
    server.client.config_set("maxmemory-policy", "noeviction")
    caplog.set_level(logging.WARNING)
    with redis_server.running(appendonly="no") as forgetful:
        RedisSink("nothing-yet", forgetful.url).check()
    assert "keeps no append-only file" in caplog.text


@pytest.mark.parametrize(
    "options",
    [
        {"stream": ""},
        {"key_field": ""},
        {"key_field": "value"},
        {"value_serializer": "x"},
        {"maxlen": 0},
        {"mode": "x"},
    ],
)
def test_wrong_arguments_are_refused(options):
    with pytest.raises(TopologyError, match="RedisSink"):
        RedisSink(**{"stream": "s", **options})


def test_a_row_that_is_no_entry_ends_the_run_with_its_name(server, entries):
    with pytest.raises(TopologyFailed, match="(?s)out.*'a' is int.*value_field=None"):
        written(server, [("a", 1)], value_field=None)
    with pytest.raises(TopologyFailed, match="(?s)out.*'a' has 3000 fields"):
        written(server, [("a", dict.fromkeys(range(3000), 1))], key_field=None, value_field=None)
    with pytest.raises(TopologyFailed, match="(?s)out.*has 0 fields"):
        written(server, [(None, {})], value_field=None)


def test_a_server_that_is_killed_is_waited_for_and_has_all(server, caplog):
    from esault.connectors.redis.client import Client

    server.client.xadd("kept", {"n": 7})
    server.stop()
    slept = []

    def sleep(seconds):
        slept.append(seconds)
        if len(slept) == 2:
            server.start()

    client = Client("RedisSink('t')", SinkError, server.url, 300, sleep=sleep, clock=lambda: 2.0 * len(slept))
    assert client.run(lambda connection: connection.xlen("kept")) == 1
    client.close()
    assert [record.message.partition(":")[0] for record in caplog.records] == [
        "RedisSink('t') waits for the server",
        "RedisSink('t') goes on",
    ]


def test_patience_ends():
    from esault.connectors.redis.client import Client

    now = [0.0]

    def sleep(seconds):
        now[0] += seconds

    client = Client("RedisSink('t')", SinkError, "redis://127.0.0.1:1", 3, sleep=sleep, clock=lambda: now[0])
    with pytest.raises(SinkError, match="start the server"):
        client.run(lambda connection: connection.ping())
    assert now == [pytest.approx(3.0)]
