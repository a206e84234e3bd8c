"""PostgresLookup against a real server: what is found, in how many questions, and what is refused."""

from __future__ import annotations

import datetime
import decimal
import uuid

import postgres_server
import pytest

from esault import SourceError, Topology, TopologyError, TopologyFailed, run, skip
from esault.lookups import PostgresLookup
from esault.sources import Items
from esault.testing import LocalRuntime


@pytest.fixture(scope="module")
def customers(server):
    server.ask("create table customers (id int primary key, name text, city text)")
    server.ask(
        "insert into customers select n, 'name' || n, case when n % 10 > 0 then 'Delft' end from generate_series(0, 999) n"
    )
    yield "customers"
    server.ask("drop table customers")


def enriched(table, keys, **options):
    t = Topology("looks-up")
    t.spout("keys", Items([(n, key) for n, key in enumerate(keys)])).enrich("found", table, **options)
    local = LocalRuntime(t)
    local.run_until_drained()
    return [found for _, (_, found) in sorted(local.emitted("found"))]


def test_rows_are_found_many_in_one_statement(server, customers, monkeypatch):
    table = PostgresLookup(server.dsn, customers, key="id")
    asked, plain = [], table._fetch
    monkeypatch.setattr(table, "_fetch", lambda keys: asked.append(len(keys)) or plain(keys))
    found = enriched(table, [*range(500), *range(500), 5000], concurrency=256)
    assert found[:500] == found[500:1000] and found[1000] is None
    assert found[0] == {"id": 0, "name": "name0", "city": None}
    assert sum(asked) == 501 and len(asked) < 100


def test_columns_are_chosen_and_what_is_missing_left_out(server, customers):
    assert enriched(PostgresLookup(server.dsn, "public.customers", key="id", columns="name"), [7, 8]) == [
        "name7",
        "name8",
    ]
    table = PostgresLookup(server.dsn, customers, key="id", columns=["city", "name"])
    assert enriched(table, [{"who": 7}, {"who": 5000}], of=lambda order: order["who"], missing="drop") == [
        {"city": "Delft", "name": "name7"}
    ]


def test_a_query_and_a_key_of_several_columns(server, customers):
    query = "select city, id % 10 as digit, count(*) as n, 'a;b' as text from customers group by 1, 2;"
    table = PostgresLookup(server.dsn, query=query, key=("city", "digit"), columns="n")
    assert enriched(table, [("Delft", 3), ("Delft", 0), (None, 0), ("Rome", 1)]) == [100, None, None, None]
    with pytest.raises(TopologyFailed, match="has 1 parts, and the columns are city, digit"):
        run_with(table, ["Delft"])


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("text", 'it\'s "quoted" \\ {x}, ü'),
        ("bigint", 1 << 40),
        ("numeric", decimal.Decimal("1.50")),
        ("uuid", uuid.uuid4()),
        ("date", datetime.date(2026, 2, 3)),
        ("timestamptz", datetime.datetime(2026, 2, 3, 4, 5, 6, 7, datetime.timezone.utc)),
        ("boolean", True),
        ("bytea", b"\x00\xff"),
        ("double precision", 0.1),
    ],
)
def test_keys_of_all_types_are_found(server, kind, key):
    server.ask(f"create table typed (key {kind}, n int)")
    try:
        server.ask("insert into typed values (%s, 5)", key)
        assert enriched(PostgresLookup(server.dsn, "typed", key="key", columns="n"), [key]) == [5]
    finally:
        server.ask("drop table typed")


def test_a_key_that_the_server_refuses_spoils_no_other(server, customers):
    table = PostgresLookup(server.dsn, customers, key="id", columns="name")
    keys = [1, "many", 2, 1 << 40, 3, "\0", (1, 2), 4]
    assert enriched(table, keys, on_error=skip(), concurrency=8) == ["name1", "name2", "name3", "name4"]
    with pytest.raises(TopologyFailed, match=r"invalid input syntax for type integer.*the key is 'many'"):
        run_with(table, ["many"])


def test_a_key_that_is_no_text_spoils_no_other(server, customers):
    table = PostgresLookup(server.dsn, customers, key="name", columns="name")
    (name,) = server.ask(f"select name from {customers} limit 1")[0]
    found = table._fetch([name, "\ud800", "a\0"])
    table._disconnect()
    assert found[name] == name
    assert "is no text in UTF-8" in str(found["\ud800"]) and "NUL" in str(found["a\0"])


def test_several_rows_of_a_key_are_an_error(server, customers):
    table = PostgresLookup(server.dsn, customers, key="city")
    with pytest.raises(TopologyFailed, match="several rows have city 'Delft'; look up by a key that is unique"):
        run_with(table, ["Delft"])


def run_with(table, keys):
    def topology():
        t = Topology("looks-up")
        t.spout("keys", Items([(n, key) for n, key in enumerate(keys)])).enrich("found", table)
        return t

    return run(topology, engine="local")


def test_what_is_wrong_is_said_with_the_remedy(server, customers):
    def check(dsn=server.dsn, table=customers, key="id", **options):
        PostgresLookup(dsn, table, key=key, **options).check()

    check()
    with pytest.raises(SourceError, match="start the server, or mend host and port"):
        check(server.dsn.replace(str(server.port), "1"))
    with pytest.raises(SourceError, match="give the right user and password"):
        check(server.dsn.replace(postgres_server.PASSWORD, "wrong"))
    with pytest.raises(SourceError, match='relation "custommers" does not exist; correct its name, or make it'):
        check(table="custommers")
    with pytest.raises(SourceError, match="no column 'number'; there are: id, name, city"):
        check(key="number")
    with pytest.raises(SourceError, match="no column 'nam'; there are: id, name, city"):
        check(columns=["nam"])
    with pytest.raises(SourceError, match=r"syntax error.*correct query='selec 1'"):
        check(table=None, query="selec 1")


def test_a_run_asks_the_server_before_it_starts(server, customers):
    with pytest.raises(SourceError, match="no column 'number'"):
        run_with(PostgresLookup(server.dsn, customers, key="number"), [1])


def test_arguments_that_make_no_sense_are_refused():
    with pytest.raises(TopologyError, match="give the name of a table, or query="):
        PostgresLookup("", key="id")
    with pytest.raises(TopologyError, match="give the name of a table, or query="):
        PostgresLookup("", "customers", key="id", query="select 1")
    with pytest.raises(TopologyError, match="write names of columns"):
        PostgresLookup("", "customers", key=[])
    with pytest.raises(TopologyError, match="write its name"):
        PostgresLookup("", "shop.", key="id")
    with pytest.raises(TopologyError, match=r"write enrich\(name, PostgresLookup\(...\), of=...\)"):
        Topology("t").spout("rows", Items([])).lookup(PostgresLookup("", "customers", key="id"))
