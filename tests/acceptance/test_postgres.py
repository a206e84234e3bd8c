"""Into PostgreSQL on real processes: scaled, killed, the server restarted, the run killed and resumed; each row once."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import from_postgres
import postgres_server
import pytest
import to_postgres
from test_acknowledged import kill_run

pytestmark = pytest.mark.slow
PLACE = f"{Path(to_postgres.__file__)}:topology"
OPTIONS = ("--checkpoint", "0.2", "--policy", "none")
ROWS = 6000


@pytest.fixture
def server():
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'esault[postgres]'")
    try:
        with postgres_server.running() as found:
            yield found
    except postgres_server.NotToBeHadError as error:
        pytest.skip(str(error))


def test_each_row_is_there_once(command, server):
    def landed():
        return server.ask("select count(*) from every_update")[0][0]

    command.start(PLACE, *OPTIONS, dsn=server.dsn, rows=ROWS)
    command.running()
    command.until(lambda: landed() > 200)
    command.until(lambda: command.scaled("count", 3))
    command.processes("count/")[0].kill()
    command.until(lambda: command.status().get("restores"))
    server.stop()
    server.start()
    seen = landed()
    command.until(lambda: landed() > seen)
    kill_run(command)
    command.start(PLACE, *OPTIONS, "--resume", "--parallelism", "count=2", dsn=server.dsn, rows=ROWS)
    code, _, err = command.wait()
    assert code == 0, err
    found = server.ask("select number, word, total from every_update order by number")
    assert [number for number, _, _ in found] == list(range(ROWS))
    words = to_postgres.WORDS
    assert all((word, total) == (f"w{number % words}", number // words + 1) for number, word, total in found)
    totals = server.ask("select word, total from totals")
    assert dict(totals) == {f"w{n}": ROWS // words for n in range(words)} and len(totals) == words
    assert server.ask("select count(*) from every_update_esault")[0][0] == 0


def test_each_change_of_a_table_counts_once(command, server, tmp_path):
    place, out = f"{Path(from_postgres.__file__)}:topology", tmp_path / "out.jsonl"
    server.ask("create table orders (id int primary key, city text, n int)")
    server.ask("insert into orders select n, 'first', 0 from generate_series(0, 49) n")
    changes, order, there = Counter(range(50)), random.Random(7), set(range(50))

    def change(count):
        for _ in range(count):
            key = order.randrange(60)
            if key not in there:
                server.ask("insert into orders values (%s, 'new', 0)", key)
                there.add(key)
            elif order.random() < 0.2:
                server.ask("delete from orders where id = %s", key)
                there.discard(key)
            else:
                server.ask("update orders set n = n + 1, city = %s where id = %s", f"c{order.randrange(9)}", key)
            changes[key] += 1

    def landed():
        rows = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
        return Counter(row["key"] for row in rows)

    command.start(place, *OPTIONS, dsn=server.dsn, out=out)
    command.until(lambda: landed() == changes)  # changes before the snapshot would be in it
    change(150)
    command.until(lambda: landed() == changes)
    command.until(lambda: command.scaled("count", 3))
    change(100)
    command.processes("orders/")[0].kill()
    command.until(lambda: command.status().get("restores"))
    change(100)
    command.until(lambda: landed() == changes)
    kill_run(command)
    change(100)
    command.start(place, *OPTIONS, "--resume", "--parallelism", "count=2", dsn=server.dsn, out=out)
    command.until(lambda: landed() == changes)
    assert command.stop()[0] == 0
    assert landed() == changes
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    for key in changes:
        assert [row["value"] for row in rows if row["key"] == key] == list(range(1, changes[key] + 1))
    same = "select id, city, n from {} order by id"
    assert server.ask(same.format("copy")) == server.ask(same.format("orders"))
