"""PostgresSink against a real server: laws of the contract, upserts, and what is refused."""

from __future__ import annotations

import datetime
import decimal
import enum
import itertools
import os
import pathlib
import socket
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import depth
import numpy as np
import psycopg
import pytest
from waiting import until

from esault import SinkError, Topology, TopologyError, TopologyFailed, run
from esault.answer_watch import AnswerWatch
from esault.connectors.postgres import client
from esault.sinks import PostgresSink
from esault.sources import Items
from esault.testing.contract import check_sink
from esault.topology.context import Context
from esault.topology.sink import Row, RunInfo


@dataclass
class Order:
    cents: int
    paid: bool
    at: datetime.datetime
    tags: list
    price: decimal.Decimal


def named():
    return f"t_{uuid.uuid4().hex[:10]}"


def written(server, rows, columns, checkpoint=0.05, **options):
    """Run rows into a new table, and return its name."""
    table = options.pop("table", None) or named()

    def topology():
        t = Topology("into")
        t.spout("rows", Items(rows)).sink("out", PostgresSink(server.dsn, table, columns, **options))
        return t

    run(
        topology,
        engine="local",
        checkpoint=checkpoint,
        state=f"state-{named()}" if checkpoint else None,
        restart=bool(checkpoint),
    )
    return table


@pytest.fixture
def ask(server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return server.ask


@pytest.mark.parametrize("primary_key", depth.chosen([None, "k"], (None,)))
def test_the_laws_of_a_sink_hold(server, primary_key):
    salt = named()

    def make(place):
        table = f"{salt}_{place.name.replace('-', '_')}"
        keys = None if primary_key is None else ["k", "v"]
        return PostgresSink(server.dsn, table, {"k": str, "v": "integer"}, primary_key=keys)

    def read(place):
        try:
            return server.ask(f"select k, v from {salt}_{place.name.replace('-', '_')} order by ctid")
        except Exception as error:
            if "does not exist" in str(error):
                return []
            raise

    assert (
        check_sink(
            make, read, order="none" if primary_key else "key", rows=[(f"k{n % 3}", n) for n in range(9)], parts=2
        )
        >= 7
    )


def test_values_of_python_are_values_of_the_table(server, ask):
    at = datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc)
    orders = [("a", Order(5, True, at, ["x"], decimal.Decimal("1.50"))), ("b", {"cents": 7, "paid": None})]
    kinds = {"id": str, "cents": int, "paid": bool, "at": datetime.datetime, "tags": list, "price": decimal.Decimal}
    table = written(server, orders, kinds)
    assert ask(f"select * from {table} order by id") == [
        ("a", 5, True, at, ["x"], decimal.Decimal("1.50")),
        ("b", 7, None, None, None, None),
    ]


class City(enum.Enum):
    ROME = "rome"


def test_what_stands_for_a_plainer_value_is_written_as_that_and_json_as_json_lines_have_it(server, ask):
    at = datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc)
    inner = {"at": at, "price": decimal.Decimal("1.50"), "ratio": float("nan"), "city": City.ROME, "of": {3: (1, 2)}}
    rows = [("rome", (pathlib.PurePosixPath("/x"), np.int64(7), np.float64(0.5), City.ROME, inner, [City.ROME, at]))]
    kinds = {"k": str, "path": str, "n": int, "x": float, "city": str, "inner": dict, "list": list}
    table = written(server, rows, kinds)
    said = {"at": "2026-01-02T00:00:00+00:00", "price": "1.50", "ratio": "NaN", "city": "rome", "of": {"3": [1, 2]}}
    assert ask(f"select * from {table}") == [
        ("rome", "/x", 7, 0.5, "rome", said, ["rome", "2026-01-02T00:00:00+00:00"])
    ]


def test_a_list_is_an_array_where_the_column_is_one_of_arrays(server, ask):
    values = (["x", 'y"z', None, "{"], [[1.5, None], [2, decimal.Decimal("3.25")]], [True, False], [], [1, "a"])
    kinds = {"id": str, "tags": "text[]", "n": "numeric[]", "ok": "boolean[]", "none": "int[]", "json": list}
    table = written(server, [("a", values)], kinds)
    ones = [[decimal.Decimal("1.5"), None], [decimal.Decimal(2), decimal.Decimal("3.25")]]
    assert ask(f"select * from {table}") == [("a", values[0], ones, [True, False], [], [1, "a"])]
    written(server, [("b", {"tags": "{q,r}"})], ["id", "tags"], table=table)  # as the server writes it
    assert ask(f"select tags from {table} where id = 'b'") == [(["q", "r"],)]


def test_a_moment_is_that_moment_in_a_column_without_a_time_zone(server, ask):
    at = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
    table = written(server, [("a", at), ("b", at.replace(tzinfo=None))], {"id": str, "at": "timestamp"})
    assert dict(ask(f"select * from {table}")) == {
        "a": datetime.datetime(2026, 1, 1, 10),
        "b": datetime.datetime(2026, 1, 1, 12),
    }


def test_of_a_primary_key_the_newest_row_stays_and_none_removes_it(server, ask):
    rows = [("a", 1), ("b", 2), ("a", 3), ("c", 4), ("b", None), ("c", None), ("c", 5)]
    table = written(server, rows, {"word": str, "n": int}, primary_key="word")
    assert ask(f"select * from {table} order by word") == [("a", 3), ("c", 5)]
    written(server, [("a", None), ("d", 1)], {"word": str, "n": int}, primary_key="word", table=table)
    assert ask(f"select * from {table} order by word") == [("c", 5), ("d", 1)]


def test_a_column_may_say_that_a_row_is_gone(server, ask):
    rows = [("a", (1, "x", False)), ("a", (2, "y", False)), ("a", (1, "x", True))]
    table = written(server, rows, {"k": str, "n": int, "s": str, "gone": bool}, primary_key=["k", "n"], deleted="gone")
    assert ask(f"select * from {table}") == [("a", 2, "y")]


def test_a_key_that_is_a_tuple_is_the_primary_key_of_several_columns(server, ask):
    rows = [(("a", 1), "x"), (("a", 2), {"s": "y"}), (("b", 1), "z"), (("a", 1), ("w",)), (("b", 1), None)]
    table = written(server, rows, {"k": str, "n": int, "s": str}, primary_key=["k", "n"])
    assert ask(f"select * from {table} order by n") == [("a", 1, "w"), ("a", 2, "y")]


def test_replace_empties_the_table_when_a_run_begins_anew(server, ask):
    table = written(server, [("a", 1)], {"k": str, "n": int})
    written(server, [("b", 2)], {"k": str, "n": int}, table=table)
    assert len(ask(f"select * from {table}")) == 2
    written(server, [("c", 3)], {"k": str, "n": int}, table=table, mode="replace")
    assert ask(f"select * from {table}") == [("c", 3)]


def test_without_checkpoints_rows_are_there_as_well(server, ask):
    table = written(server, [(f"k{n}", n) for n in range(100)], {"k": str, "n": int}, checkpoint=None)
    assert ask(f"select count(*), sum(n) from {table}") == [(100, 4950)]
    assert ask(f"select count(*) from {table}_esault") == [(0,)]


def test_a_table_of_ones_own_in_a_schema_with_odd_names(server, ask):
    ask('create schema if not exists "Odd"')
    ask(
        'create table if not exists "Odd"."The ""t""" ("the key" text primary key, n int, made timestamptz default now())'
    )
    written(server, [("a", 1), ("a", 2)], ["the key", "n"], table='Odd.The "t"', primary_key="the key")
    assert ask('select "the key", n, made is not null from "Odd"."The ""t"""') == [("a", 2, True)]


def checked(dsn, table, columns, **options):
    with pytest.raises(SinkError) as error:
        PostgresSink(dsn, table, columns, **options).check()
    return str(error.value)


def test_what_is_amiss_is_said_before_anything_starts(server, ask):
    table = named()
    assert f"there is no table {table}" in checked(server.dsn, table, ["k", "n"])
    ask(f"create table {table} (k text, n int)")
    assert "has no column 'm'; it has: k, n" in checked(server.dsn, table, ["k", "m"])
    assert f'CREATE UNIQUE INDEX ON "{table}" ("k")' in checked(server.dsn, table, ["k", "n"], primary_key="k")
    assert "give the right user and password" in checked(server.dsn.replace("wonder", "wrong"), table, ["k", "n"])
    assert "make it with createdb" in checked(
        server.dsn.replace("dbname=postgres", "dbname=nowhere"), table, ["k", "n"]
    )
    assert "start the server" in checked("host=127.0.0.1 port=1 user=x", table, ["k", "n"])
    said = checked(server.dsn, "nowhere.t", {"k": str, "n": int})
    assert "there is no schema nowhere: CREATE SCHEMA" in said, "also where the table would be made"


@pytest.mark.parametrize(
    ("columns", "options"),
    [
        ([], {}),
        (["k", "k"], {}),
        (["k", "n"], {"primary_key": "x"}),
        (["k", "n"], {"deleted": "n"}),
        (["k", "n"], {"deleted": "gone", "primary_key": "k"}),
        ({"k": set}, {}),
        (["k"], {"mode": "x"}),
    ],
)
def test_wrong_arguments_are_refused(columns, options):
    with pytest.raises(TopologyError, match="PostgresSink"):
        PostgresSink("", "t", columns, **options)


def test_a_null_that_the_table_does_not_take_is_refused_before_the_checkpoint(server, ask):
    table = named()
    ask(f"create table {table} (k text primary key, n int not null)")
    with pytest.raises(TopologyFailed, match="column 'n' holds no null, and the row of key 'b'"):
        written(server, [("a", 1), ("b", {"n": None})], ["k", "n"], table=table, primary_key="k")
    written(
        server, [("a", 2), ("a", None)], ["k", "n"], table=table, primary_key="k"
    )  # one that removes its key has nulls
    assert ask(f"select count(*) from {table}_esault") == [(0,)]


def test_a_row_that_breaks_a_constraint_is_refused_before_the_checkpoint(server, ask):
    table = named()
    ask(
        f"create table {table} (k text, n int constraint few check (n % 100 < 50), other int default 7 check (other > n / 100))"
    )
    with pytest.raises(TopologyFailed, match=r"the row of key 'b' breaks the constraint 'few' of the table"):
        written(server, [("a", 1), ("b", 60)], ["k", "n"], table=table)
    assert ask(f"select count(*) from {table}") == [(0,)], "no checkpoint was complete"
    written(server, [("a", 1), ("b", {"n": None})], ["k", "n"], table=table)
    assert ask(f"select k, n from {table} order by k") == [("a", 1), ("b", None)]
    assert ask(f"select count(*) from {table}_esault") == [(0,)]


def test_a_removed_key_breaks_no_constraint(server, ask):
    table = named()
    ask(f"create table {table} (k text primary key, n int, check (n is not null))")
    written(server, [("a", 1), ("b", 2), ("a", None)], ["k", "n"], table=table, primary_key="k")
    assert ask(f"select k, n from {table}") == [("b", 2)]


@pytest.mark.parametrize("index", ["primary key", "unique"])
def test_a_second_row_of_what_is_unique_is_refused_before_the_checkpoint(server, ask, index):
    table = named()
    ask(f"create table {table} (k text {index}, n int)")
    ask(f"insert into {table} values ('old', 0)")
    for rows, said in (
        ([("a", 1), ("b", 2), ("a", 3)], r"one row for each k, and there are two: Key \(k\)=\(a\)"),
        ([("a", 1), ("old", 2)], "that of key 'old' is there already"),
    ):
        with pytest.raises(TopologyFailed, match=said):
            written(server, rows, ["k", "n"], table=table)
        assert ask(f"select k from {table}") == [("old",)], "no checkpoint was complete"
    written(server, [("a", 1), ("b", 2)], ["k", "n"], table=table)
    assert ask(f"select k from {table} order by k") == [("a",), ("b",), ("old",)]


def test_what_only_the_commit_finds_says_how_to_go_on(server, ask):
    table = named()
    ask(f"create table {table}_of (k text primary key)")
    ask(f"create table {table} (k text references {table}_of, n int)")
    with pytest.raises(
        TopologyFailed, match="(?s)violates foreign key.*correct the rows or the constraint, then go on with --resume"
    ):
        written(server, [("a", 1)], ["k", "n"], table=table)


def test_two_sinks_of_a_run_may_write_one_table(server, ask):
    table = named()
    ask(f"create table {table} (k text, n int)")

    def topology():
        t = Topology("two")
        rows = t.spout("rows", Items([(f"k{n}", n) for n in range(50)]))
        for name in ("one", "other"):
            rows.sink(name, PostgresSink(server.dsn, table, ["k", "n"]))
        return t

    run(topology, engine="local", checkpoint=0.05, state="state-two", restart=True)
    assert ask(f"select count(*), sum(n) from {table}") == [(100, 2450)]


def test_appended_rows_of_a_checkpoint_stand_in_the_order_in_which_they_were_written(server):
    table = named()
    server.ask(f"create table {table} (place bigserial, k text, n int)")
    sinks = [PostgresSink(server.dsn, table, ["k", "n"]) for _ in range(3)]
    driver, *parts = sinks
    driver.begin(RunInfo("run", "topology", "sink", lineage="lineage"))
    clock = itertools.count(1)
    for number, sink in enumerate(parts):
        sink.open(Context("sink", number, now=lambda: float(next(clock)), lineage="lineage"))
    for n in range(6):  # the key moves to and fro
        parts[n % 2].write([Row("k", n, 0.0)])
    handles = [sink.prepare(1).result(60) for sink in parts]
    driver.commit_all(1, handles[::-1])
    assert server.ask(f"select n from {table} order by place") == [(n,) for n in range(6)]
    for sink in sinks:
        sink.close()


def test_a_value_that_does_not_fit_ends_the_run_with_its_name(server, ask):
    with pytest.raises(TopologyFailed, match="(?s)out.*invalid input syntax for type integer"):
        written(server, [("a", "many")], {"k": str, "n": "integer"})


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"n": 2**40}, "column 'n' of the row of key 'bad': value \"1099511627776\" is out of range for type integer"),
        ({"text": "a\0b"}, "the row of key 'bad' cannot be written: .*NUL"),
        ({"text": "\ud800"}, "the row of key 'bad' cannot be written: .*surrogates not allowed"),
        ({"doc": {"a": "\0"}}, "column 'doc' of the row of key 'bad': unsupported Unicode escape sequence"),
    ],
)
def test_a_value_that_cannot_be_written_is_told_with_its_key(server, ask, value, said):
    with pytest.raises(TopologyFailed, match=f"(?s){said}.*; correct"):
        written(server, [("good", {}), ("bad", value)], {"id": str, "n": "int", "text": str, "doc": dict})


def test_a_column_that_has_another_type_now_takes_what_that_takes(server, ask):
    table = written(server, [("a", 1)], {"id": str, "n": "int"})
    ask(f"alter table {table} alter column n type bigint")
    written(server, [("b", 2**40)], {"id": str, "n": "int"}, table=table)
    assert sorted(ask(f"select * from {table}")) == [("a", 1), ("b", 2**40)]


def test_a_server_that_restarts_is_waited_for(server, ask, caplog):
    from esault.connectors.postgres.client import Client

    server.stop()
    slept = []

    def sleep(seconds):
        slept.append(seconds)
        if len(slept) == 2:
            server.start()

    client = Client("PostgresSink('t')", SinkError, server.dsn, 300, sleep=sleep)
    assert client.run(lambda cursor: cursor.execute("select 7").fetchone()) == (7,)
    client.close()
    assert [record.message.partition(":")[0] for record in caplog.records] == [
        "PostgresSink('t') waits for the server",
        "PostgresSink('t') goes on",
    ]


def test_a_server_that_stands_still_is_said_and_gone_on_with(server, caplog, monkeypatch):
    monkeypatch.setattr(client, "_watch", AnswerWatch(0.1))
    asking = client.Client("PostgresSink('t')", SinkError, server.dsn, 300)
    with ThreadPoolExecutor(1) as other:
        with server.frozen():
            answer = other.submit(asking.run, lambda cursor: cursor.execute("select 7").fetchone())
            until(lambda: caplog.messages)
            assert not answer.done()
        assert answer.result(60) == (7,)
    asking.close()
    assert caplog.messages == [
        "PostgresSink('t') waits for the server: no answer for 0 s",
        "PostgresSink('t') goes on: the server answers",
    ]


def test_a_machine_that_is_gone_without_a_word_is_given_up_and_the_dsn_goes_before(server):
    asking = client.Client("PostgresSink('t')", SinkError, server.dsn, 300)
    descriptor = asking.once(lambda cursor: cursor.connection.fileno())
    with socket.socket(fileno=os.dup(descriptor)) as connection:
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 30_000
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    asking.close()
    options = client.connection_options(psycopg, "host=a connect_timeout=3 tcp_user_timeout=5")
    assert not options.keys() & {"connect_timeout", "tcp_user_timeout"} and options["keepalives_idle"] == 10
