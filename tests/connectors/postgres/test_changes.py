"""PostgresChanges against a real server: snapshot, changes, positions, and what is refused."""

from __future__ import annotations

import datetime
import decimal
import signal
import time
import uuid
from collections import Counter

import psycopg
import pytest
from postgres_changes import drop_slots, opened, rows_of
from waiting import until

from esault import CheckpointError, SourceError, TopologyError
from esault.connectors.postgres import changes
from esault.flow.operators.user_error import is_transient
from esault.lookups import PostgresLookup
from esault.sources import PostgresChanges
from esault.topology.context import Context
from esault.topology.spout import EndOfStream


@pytest.fixture
def table(server):
    name = f"orders_{uuid.uuid4().hex[:8]}"
    server.ask(f"create table {name} (id int primary key, city text, price numeric, at timestamptz)")
    yield name
    drop_slots(server, name)


def test_first_comes_the_snapshot_and_then_each_change_in_the_order_of_commits(server, table):
    server.ask(f"insert into {table} select n, 'a', n, '2026-01-01T00:00:00Z' from generate_series(1, 5) n")
    source = opened(server, table)
    at = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
    first = rows_of(source, 5)
    assert sorted(first) == [(n, {"id": n, "city": "a", "price": decimal.Decimal(n), "at": at}) for n in range(1, 6)]
    with psycopg.connect(server.dsn) as connection:
        connection.execute(f"insert into {table} values (6, 'b', null, null)")
        connection.execute(f"update {table} set city = 'c' where id = 1")
        connection.execute(f"delete from {table} where id = 2")
        connection.execute(f"update {table} set id = 30 where id = 3")
    with psycopg.connect(server.dsn) as connection:
        connection.execute(f"insert into {table} values (7, 'never', null, null)")
        connection.rollback()
    assert rows_of(source, 5) == [
        (6, {"id": 6, "city": "b", "price": None, "at": None}),
        (1, {"id": 1, "city": "c", "price": decimal.Decimal(1), "at": at}),
        (2, None),
        (3, None),
        (30, {"id": 30, "city": "a", "price": decimal.Decimal(3), "at": at}),
    ]
    source.close()


def test_it_has_caught_up_behind_the_snapshot(server, table):
    server.ask(f"insert into {table} select n, 'a', n, null from generate_series(1, 50) n")
    source = opened(server, table)
    assert not source.caught_up()
    assert len(source.read(20)) == 20 and not source.caught_up()
    assert len(rows_of(source, 30)) == 30
    assert source.read(1) == [] and source.caught_up()
    source.close()


def test_with_metadata_each_change_says_what_it_was(server, table):
    server.ask(f"alter table {table} replica identity full")
    source = opened(server, table, metadata=True, snapshot="never")
    assert source.read(10) == []
    server.ask(f"insert into {table} values (1, 'a', 1, null)")
    server.ask(f"update {table} set city = 'b'")
    server.ask(f"delete from {table}")
    found = [value for _, value in rows_of(source, 3)]
    assert [value["kind"] for value in found] == ["insert", "update", "delete"]
    assert [value["row"] and value["row"]["city"] for value in found] == ["a", "b", None]
    assert [value["old"] and value["old"]["city"] for value in found] == [None, "a", "b"]
    assert all(value["table"] == table and value["time"] > 1.7e9 for value in found)
    source.close()


def test_what_changes_take_away_and_add_is_the_table(server, table):
    server.ask(f"alter table {table} replica identity full")
    server.ask(f"insert into {table} select n, 'c' || n % 2, n from generate_series(1, 4) n")
    source = opened(server, table, metadata=True)
    found = rows_of(source, 4)
    server.ask(f"update {table} set city = 'c9' where id = 1")
    server.ask(f"update {table} set id = 20, price = 5 where id = 2")
    server.ask(f"delete from {table} where id = 3")
    found += rows_of(source, 4)
    assert [value["kind"] for _, value in found[4:]] == ["update", "delete", "insert", "delete"]
    sums: Counter[str] = Counter()
    for _, change in found:
        for sign, row in ((-1, change["old"]), (1, change["row"])):
            if row is not None:
                sums[row["city"]] += sign * row["price"]
    assert +sums == dict(server.ask(f"select city, sum(price) from {table} group by city"))
    source.close()


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_from_any_position_on_come_the_rest_of_the_changes(server, table, limit):
    source = opened(server, table, snapshot="never")
    source.read(1)
    for first in (0, 10, 20):
        server.ask(f"insert into {table} select n, 'x' from generate_series({first}, {first + 4}) n")
    found, places = [], []
    while len(found) < 15:
        places.append((source.position(), len(found)))
        found += source.read(limit)
    source.close()
    keys = [key for key, _ in found]
    for position, before in places[:: max(1, len(places) // 4)]:
        again = opened(server, table, position, snapshot="never")
        assert [key for key, _ in rows_of(again, 15 - before)] == keys[before:]
        again.close()


def test_the_slot_moves_with_what_is_committed_and_an_older_position_is_refused(server, table):
    source = opened(server, table, snapshot="never")
    source.read(1)
    early = source.position()
    server.ask(f"insert into {table} values (1)")
    rows_of(source, 1)
    late = source.position()
    assert late[0] > early[0] and late[1] == 0
    source.commit(late)
    source.close()

    def confirmed():
        return server.ask(
            "select confirmed_flush_lsn > %s::pg_lsn from pg_replication_slots where slot_name = %s", early_text, slot
        )

    from esault.connectors.postgres.replication import lsn_text

    early_text, slot = lsn_text(early[0]), f"s_{table}"
    for _ in range(200):
        if confirmed() == [(True,)]:
            break

        time.sleep(0.02)
    again = opened(server, table, early)
    with pytest.raises(SourceError, match="the changes between are gone"):
        again.read(1)
    again.close()
    server.ask("select pg_drop_replication_slot(%s)", slot)
    again = opened(server, table, late)
    with pytest.raises(SourceError, match=r"is gone.*--restart"):
        again.read(1)
    again.close()


def test_a_snapshot_that_was_cut_off_begins_anew_and_no_checkpoint_is_taken_in_it(server, table):
    server.ask(f"insert into {table} select n from generate_series(1, 50) n")
    source = opened(server, table)
    said = []
    for _ in range(3):
        assert len(source.read(10)) == 10
        with pytest.raises(CheckpointError, match="the snapshot of its tables is being read") as error:
            source.settle()
        said.append(str(error.value))
    assert len(set(said)) == 1 and "at least 10 rows so far" in said[0]  # a run tells what is new, not each second
    source.close()
    slots = "select count(*) from pg_replication_slots where slot_name like %s"
    until(lambda: server.ask(slots, f"s_{table}%") == [(0,)])  # the server drops it behind the end of the connection
    server.ask(f"insert into {table} values (51)")
    again = opened(server, table)
    assert len(rows_of(again, 51)) == 51
    again.read(1)
    again.settle()
    again.close()


def test_until_now_ends_with_what_was_there(server, table):
    server.ask(f"insert into {table} values (1), (2)")
    source = opened(server, table, until="now")
    found = rows_of(source, 2)
    with pytest.raises(EndOfStream):
        rows_of(source, 1)
    assert sorted(key for key, _ in found) == [1, 2]
    source.close()


def test_a_server_that_restarts_is_waited_for(server, table, caplog):
    source = opened(server, table, snapshot="never")
    source.read(1)
    server.ask(f"insert into {table} values (1)")
    assert len(rows_of(source, 1)) == 1
    server.stop(signal.SIGQUIT)  # an orderly one waits for readers, and this one is here
    assert source.read(1) == []
    server.start()
    server.ask(f"insert into {table} values (2)")
    assert [key for key, _ in rows_of(source, 1)] == [2]
    waits = [record.message for record in caplog.records if "waits for the server" in record.message]
    assert len(waits) == 1
    source.close()


def test_a_server_that_stands_still_is_said_and_gone_on_with(server, table, caplog, monkeypatch):
    monkeypatch.setattr(changes, "SILENT_AFTER", 0.2)
    monkeypatch.setattr(changes, "ALIVE_EVERY", 0.05)
    source = opened(server, table, snapshot="never")
    source.read(1)
    with server.frozen():
        until(lambda: source.read(1) or caplog.messages)
    server.ask(f"insert into {table} values (1)")
    assert [key for key, _ in rows_of(source, 1)] == [1]
    who = f"PostgresChanges({table})"
    assert caplog.messages == [
        f"{who} waits for the server: no answer for 0 s",
        f"{who} goes on: the server answers",
    ]
    source.close()


@pytest.mark.parametrize("asked", [1, 3000])
def test_a_server_that_goes_away_during_the_snapshot_has_it_begin_anew(server, table, asked):
    server.ask(f"insert into {table} select n from generate_series(1, 5000) n")
    source = opened(server, table)
    assert len(rows_of(source, asked)) < 5000
    server.stop()
    with pytest.raises(SourceError, match="while the snapshot of the tables was read, which begins anew") as error:
        rows_of(source, 5000)
    assert is_transient(error.value)
    source.close()
    server.start()
    again = opened(server, table)
    assert len(rows_of(again, 5000)) == 5000
    again.close()


def test_a_slot_that_a_lost_reader_still_holds_is_waited_for_and_a_wrong_one_is_not(server, table, caplog):
    first = opened(server, table, snapshot="never")
    first.read(1)
    second = opened(server, table, first.position())
    assert second.read(1) == []
    assert "is active for PID" in caplog.text
    first.close()
    server.ask(f"insert into {table} values (1)")
    assert [key for key, _ in rows_of(second, 1)] == [1]
    server.ask(f"drop publication s_{table}")
    server.ask(f"insert into {table} values (2)")
    with pytest.raises(SourceError, match="publication .* does not exist"):
        rows_of(second, 1)
    second.close()


def refused(server, table, **options):
    source = PostgresChanges(server.dsn, table, slot=f"s_{table}", **options)
    with pytest.raises(SourceError) as error:
        source.check()
        source.context = Context("changes")
        source.open(source.context)
        source.read(1)
    source.close()
    return str(error.value)


def test_what_is_amiss_is_said(server, table):
    assert "there is no table nowhere; make it, or correct tables" in refused(server, "nowhere")
    server.ask(f"create table {table}_bare (n int)")
    assert "has no primary key: ALTER TABLE" in refused(server, f"{table}_bare")
    assert "there is no publication 'mine'" in refused(server, table, publication="mine")
    with pytest.raises(TopologyError, match="a slot's name has letters"):
        PostgresChanges(server.dsn, table, slot="Slot-1")
    with pytest.raises(TopologyError, match="snapshot="):
        PostgresChanges(server.dsn, table, slot="s", snapshot="x")


def test_a_large_value_that_did_not_change_is_never_taken_for_none(server, table):
    server.ask(f"alter table {table} alter column city set storage external")
    source = opened(server, table, snapshot="never")
    source.read(1)
    server.ask(f"insert into {table} values (1, %s)", "x" * 100_000)
    server.ask(f"update {table} set price = 2")
    assert len(rows_of(source, 1, limit=1)) == 1
    with pytest.raises(SourceError, match="REPLICA IDENTITY FULL"):
        rows_of(source, 1)
    source.close()


def test_a_time_that_python_has_no_object_for_comes_as_its_text(server, table):
    odd = ["infinity", "-infinity", "0044-03-15 12:00:00+00 BC"]
    server.ask(f"alter table {table} add column days date[]")
    server.ask(f"insert into {table} values (1, 'a', 1, %s, %s)", odd[0], "{2026-01-01,infinity}")
    source = opened(server, table)
    found = rows_of(source, 1)
    server.ask(f"insert into {table} values (2, 'a', 1, %s), (3, 'a', 1, %s)", *odd[1:])
    found += rows_of(source, 2)
    source.close()
    assert [row["at"] for _, row in found] == odd
    assert found[0][1]["days"] == [datetime.date(2026, 1, 1), "infinity"]
    lookup = PostgresLookup(server.dsn, table, key="id", columns="at")
    assert lookup._fetch([1, 2]) == {1: odd[0], 2: odd[1]}
    lookup._disconnect()


@pytest.fixture(params=["LATIN1", "UTF8"])
def elsewhere(server, request):
    """A database of other customs than those of most: it has dates, spans of time and characters in forms of its own."""
    name = f"d_{uuid.uuid4().hex[:8]}"
    server.ask(f"create database {name} encoding {request.param} lc_collate 'C' lc_ctype 'C' template template0")
    for setting in ("datestyle = 'German, DMY'", "intervalstyle = 'iso_8601'", "timezone = 'Asia/Kolkata'"):
        server.ask(f"alter database {name} set {setting}")
    database = Database(psycopg.conninfo.make_conninfo(server.dsn, dbname=name))
    yield database
    drop_slots(database, "orders")
    server.ask(f"drop database {name} with (force)")


class Database:
    def __init__(self, dsn):
        self.dsn = dsn

    def ask(self, statement, *values):
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            cursor = connection.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []


def test_the_customs_of_a_database_make_no_other_values(elsewhere):
    at = datetime.datetime(2026, 2, 1, 12, tzinfo=datetime.timezone.utc)
    day, row = (
        datetime.date(2026, 2, 1),
        "'Zürich', timestamptz '2026-02-01T12:00:00Z', date '2026-02-01', interval '26 hours'",
    )
    elsewhere.ask("create table orders (id int primary key, city text, at timestamptz, day date, span interval)")
    elsewhere.ask(f"insert into orders values (1, {row})")
    source = opened(elsewhere, "orders")
    first = rows_of(source, 1)
    elsewhere.ask(f"insert into orders values (2, {row})")
    both = first + rows_of(source, 1)
    source.close()
    span = datetime.timedelta(hours=26)
    assert both == [(n, {"id": n, "city": "Zürich", "at": at, "day": day, "span": span}) for n in (1, 2)]
