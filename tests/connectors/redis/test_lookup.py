"""RedisLookup against a real server: what is found, in how many questions, and what is refused."""

from __future__ import annotations

import json
import uuid

import pytest
import redis_server

from esault import SourceError, Topology, TopologyError, TopologyFailed, run, skip
from esault.lookups import RedisLookup
from esault.sources import Items
from esault.testing import LocalRuntime


@pytest.fixture(scope="module", autouse=True)
def filled(server):
    with server.client.pipeline() as pipeline:
        for n in range(500):
            pipeline.hset(f"customer:{n}", mapping={"name": f"name{n}", "city": "Delft"})
            pipeline.set(f"total:{n}:eu", json.dumps({"n": n}))
        pipeline.set("total:bad:eu", "{")
        pipeline.execute()


def enriched(table, keys, **options):
    t = Topology("looks-up")
    t.spout("keys", Items([(n, key) for n, key in enumerate(keys)])).enrich("found", table, **options)
    local = LocalRuntime(t)
    local.run_until_drained()
    return [found for _, (_, found) in sorted(local.emitted("found"))]


def test_hashes_are_found_many_in_one_pipeline(server, monkeypatch):
    table = RedisLookup("customer:{}", server.url)
    asked, plain = [], table._fetch
    monkeypatch.setattr(table, "_fetch", lambda keys: asked.append(len(keys)) or plain(keys))
    found = enriched(table, [*range(500), *range(500), 5000, None], concurrency=256)
    assert found[:500] == found[500:1000] and found[1000:] == [None, None]
    assert found[7] == {"name": "name7", "city": "Delft"}
    assert sum(asked) == 501 and len(asked) < 100


def test_what_the_cache_answers_is_counted(server):
    t = Topology("counts")
    keys = t.spout("keys", Items([(n, n % 5) for n in range(50)]))
    keys.enrich("found", RedisLookup("customer:{}", server.url), concurrency=1)
    local = LocalRuntime(t)
    local.run_until_drained()
    table = "table=\"RedisLookup('customer:{}')\""
    metrics = local.report().units["found"].metrics
    assert metrics[f"lookup_cache_misses{{{table}}}"] == 5
    assert metrics[f"lookup_cache_hits{{{table}}}"] == 45


def test_fields_are_chosen_and_what_is_missing_left_out(server):
    assert enriched(RedisLookup("customer:{}", server.url, fields="name"), ["7", "x"]) == ["name7", None]
    table = RedisLookup("customer:{}", server.url, fields=["city", "age"])
    assert enriched(table, [7, "x"], missing="drop") == [{"city": "Delft", "age": None}]


def test_strings_and_keys_of_several_parts(server):
    table = RedisLookup("total:{}:{}", server.url, type="string")
    assert enriched(table, [(3, "eu"), (3, "us"), (None, "eu")]) == [{"n": 3}, None, None]
    assert enriched(table, [("bad", "eu"), "one", (4, "eu")], on_error=skip()) == [{"n": 4}]
    assert enriched(RedisLookup("total:{}:eu", server.url, type="string", value_deserializer="text"), [3]) == [
        '{"n": 3}'
    ]


def test_what_is_wrong_is_said_with_the_remedy(server):
    RedisLookup("customer:{}", server.url).check()
    with pytest.raises(SourceError, match="start the server, or mend host and port"):
        RedisLookup("customer:{}", "redis://127.0.0.1:1/0").check()
    with pytest.raises(SourceError, match="give the right user and password"):
        RedisLookup("customer:{}", server.url.replace(redis_server.PASSWORD, "wrong")).check()
    with pytest.raises(SourceError, match="name another database"):
        RedisLookup("customer:{}", server.url.replace("/0", "/77")).check()

    def topology():
        t = Topology("looks-up")
        t.spout("keys", Items([(1, 3)])).enrich("found", RedisLookup("total:{}:eu", server.url))
        return t

    with pytest.raises(TopologyFailed, match="'total:3:eu' is no hash; correct the name, or write type=\"string\""):
        run(topology, engine="local")


def test_arguments_that_make_no_sense_are_refused():
    with pytest.raises(TopologyError, match="with {} for what is looked up"):
        RedisLookup("customers")
    with pytest.raises(TopologyError, match='write "hash" or "string"'):
        RedisLookup("c:{}", type="list")
    with pytest.raises(TopologyError, match="are those of a hash"):
        RedisLookup("c:{}", type="string", fields=["a"])


def test_a_key_of_any_bytes_is_found_and_one_that_is_no_text_spoils_no_other(server):
    salt = uuid.uuid4().hex[:8]
    server.client.hset(f"{salt}:7", mapping={"n": "x"})
    server.client.hset(salt.encode() + b":\xff", mapping={"n": "y"})
    table = RedisLookup(f"{salt}:{{}}", server.url)
    found = table._fetch(["7", b"\xff", "\ud800"])
    assert (found["7"], found[b"\xff"]) == ({"n": "x"}, {"n": "y"})
    assert "is no text in UTF-8: give it as bytes" in str(found["\ud800"])
    table._disconnect()
