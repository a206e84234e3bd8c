"""A publication that does not send a table: PostgreSQL says nothing of it, and changes would be missing without a word."""

from __future__ import annotations

import uuid

import pytest
from postgres_changes import drop_slots, opened, rows_of

from esault import SourceError
from esault.sources import PostgresChanges
from esault.topology.context import Context


@pytest.fixture
def table(server):
    name = f"orders_{uuid.uuid4().hex[:8]}"
    make(server, name)
    yield name
    drop_slots(server, name)
    server.ask(f"drop publication if exists p_{name}")


def make(server, name):
    server.ask(f"create table {name} (id int primary key, city text)")


def make_anew(server, name):
    server.ask(f"drop table {name}")
    make(server, name)


def test_a_table_that_was_made_anew_is_read_by_a_run_that_begins_anew(server, table):
    server.ask(f"insert into {table} values (1, 'a')")
    source = opened(server, table)
    assert rows_of(source, 1) == [(1, {"id": 1, "city": "a"})]
    source.close()
    make_anew(server, table)
    source = opened(server, table)
    assert source.read(10) == []
    server.ask(f"insert into {table} values (2, 'b')")
    assert rows_of(source, 1) == [(2, {"id": 2, "city": "b"})]
    source.close()


def test_one_that_goes_on_says_that_changes_are_missing(server, table):
    source = opened(server, table)
    assert source.read(10) == []  # the snapshot
    server.ask(f"insert into {table} values (1, 'a')")
    assert rows_of(source, 1) == [(1, {"id": 1, "city": "a"})]
    position = source.position()
    source.close()
    make_anew(server, table)
    server.ask(f"insert into {table} values (2, 'b')")
    source = opened(server, table, position)
    with pytest.raises(SourceError, match=rf"does not send changes of {table}, .*--restart"):
        source.read(10)
    source.close()
    server.ask(f"drop publication s_{table}")
    source = opened(server, table, position)
    with pytest.raises(SourceError, match=r"there is no publication .*--restart"):
        source.read(10)
    source.close()


def test_one_that_begins_without_a_snapshot_says_what_it_has_not_seen(server, table, caplog):
    source = opened(server, table, snapshot="never")
    source.read(10)
    source.close()
    make_anew(server, table)
    server.ask(f"insert into {table} values (1, 'unseen')")
    source = opened(server, table, snapshot="never")
    source.read(10)
    assert f"had no changes of {table} until now" in caplog.text
    server.ask(f"insert into {table} values (2, 'b')")
    assert rows_of(source, 1) == [(2, {"id": 2, "city": "b"})]
    source.close()


def test_tables_that_the_source_no_longer_names_are_sent_no_longer(server, table):
    other = f"{table}_other"
    make(server, other)
    source = opened(server, [table, other])
    source.read(10)
    source.close()
    source = opened(server, table)
    source.read(10)
    server.ask(f"insert into {other} values (1, 'a')")
    server.ask(f"insert into {table} values (2, 'b')")
    assert rows_of(source, 1) == [(2, {"id": 2, "city": "b"})]
    source.close()


def test_a_publication_of_others_is_checked_before_the_run(server, table):
    with pytest.raises(SourceError, match=rf'there is no publication .*CREATE PUBLICATION "p_{table}" FOR TABLE'):
        opened(server, table, publication=f"p_{table}")
    server.ask(f"create publication p_{table} for table {table}")
    source = opened(server, table, publication=f"p_{table}")
    source.read(10)
    server.ask(f"insert into {table} values (1, 'a')")
    assert rows_of(source, 1) == [(1, {"id": 1, "city": "a"})]
    source.close()
    make_anew(server, table)
    with pytest.raises(SourceError, match=rf'ALTER PUBLICATION "p_{table}" ADD TABLE "{table}"'):
        opened(server, table, publication=f"p_{table}")


def test_one_of_all_tables_or_of_parts_of_a_table_sends_them(server, table):
    parts = f"{table}_parts"
    server.ask(f"create table {parts} (id int primary key, city text) partition by range (id)")
    server.ask(f"create table {parts}_1 partition of {parts} for values from (0) to (100)")
    server.ask(f"create publication p_{table} for table {parts}")
    opened(server, parts, publication=f"p_{table}").close()
    server.ask(f"drop publication p_{table}")
    server.ask(f"create publication p_{table} for all tables")
    opened(server, parts, publication=f"p_{table}").close()
    opened(server, table, publication=f"p_{table}").close()


def test_the_snapshot_has_the_columns_and_rows_whose_changes_come(server, table):
    made = f"{table}_made"
    server.ask(f"create table {made} (id int primary key, n int, twice int generated always as (2 * n) stored)")
    server.ask(f"insert into {made} (id, n) values (1, 1)")
    source = opened(server, made)
    found = rows_of(source, 1)
    server.ask(f"insert into {made} (id, n) values (2, 2)")
    assert found + rows_of(source, 1) == [(1, {"id": 1, "n": 1}), (2, {"id": 2, "n": 2})]
    source.close()
    if server.ask("select current_setting('server_version_num')::int")[0][0] < 150_000:
        return
    server.ask(f"insert into {made} (id, n) values (-1, 1)")
    server.ask(f"create publication p_{table} for table {made} (id) where (id > 0)")
    chosen = PostgresChanges(server.dsn, made, slot=f"s_{made}_2", publication=f"p_{table}")
    chosen.check()
    chosen.open(Context("changes"))
    found = rows_of(chosen, 2)
    server.ask(f"insert into {made} (id, n) values (-3, 3), (3, 3)")
    assert found + rows_of(chosen, 1) == [(1, {"id": 1}), (2, {"id": 2}), (3, {"id": 3})]
    chosen.close()
    server.ask(f"alter publication p_{table} set table {made} (n)")
    with pytest.raises(SourceError, match=f"leaves out column 'id' of {made}, which is of the primary key"):
        opened(server, made, publication=f"p_{table}")


@pytest.mark.parametrize("identity", ["using index", "nothing"])
def test_a_table_whose_removed_rows_have_no_key_is_refused(server, table, identity):
    server.ask(f"alter table {table} alter column city set not null")
    server.ask(f"create unique index {table}_city on {table} (city)")
    source = opened(server, table, snapshot="never")
    source.read(1)
    server.ask(f"alter table {table} replica identity {identity} {f'{table}_city' if identity != 'nothing' else ''}")
    with pytest.raises(
        SourceError, match=r"does not say whose row was removed: ALTER TABLE .* REPLICA IDENTITY DEFAULT"
    ):
        opened(server, table)
    server.ask(f"insert into {table} values (1, 'a')")
    with pytest.raises(SourceError, match="does not say whose row was removed"):
        rows_of(source, 1)
    source.close()
