"""Lookups on real processes: scaled, killed, both servers restarted, the run killed and resumed; each row once, with its answers."""

from __future__ import annotations

import json
from pathlib import Path

import postgres_server
import pytest
import redis_server
import with_lookups
from test_acknowledged import kill_run

pytestmark = pytest.mark.slow
PLACE = f"{Path(with_lookups.__file__)}:topology"
OPTIONS = ("--checkpoint", "0.2", "--policy", "none")
ROWS = 6000


@pytest.fixture
def servers():
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'esault[postgres]'")
    pytest.importorskip("redis", reason="redis-py is not installed: pip install 'esault[redis]'")
    try:
        with postgres_server.running() as postgres, redis_server.running() as redis:
            yield postgres, redis
    except (postgres_server.NotToBeHadError, redis_server.NotToBeHadError) as error:
        pytest.skip(str(error))


def test_each_row_goes_out_once_with_what_the_servers_have(command, servers, tmp_path):
    postgres, redis = servers
    known = with_lookups.CUSTOMERS * 4 // 5
    postgres.ask("create table customers (id int primary key, name text)")
    postgres.ask("insert into customers select n, 'name' || n from generate_series(0, %s) n", known - 1)
    for n in range(with_lookups.PRICES):
        redis.client.set(f"price:{n}", json.dumps(n + 0.5))
    out = tmp_path / "out.jsonl"
    params = {"dsn": postgres.dsn, "url": redis.url, "out": out, "rows": ROWS}

    def landed():
        return out.read_text().count("\n") if out.exists() else 0

    command.start(PLACE, *OPTIONS, **params)
    command.running()
    command.until(lambda: landed() > 200)
    command.until(lambda: command.scaled("named", 3) and command.scaled("priced", 3))
    clients = "select count(*) from pg_stat_activity where application_name = 'esault'"
    assert postgres.ask(clients)[0][0] <= 3, "a connection for each sub-unit, whatever its keys"
    command.processes("named/")[0].kill()
    command.until(lambda: command.status().get("restores"))
    seen = landed()
    postgres.stop()
    redis.stop()
    postgres.start()
    redis.start()
    command.until(lambda: landed() > seen)
    kill_run(command)
    command.start(PLACE, *OPTIONS, "--resume", "--parallelism", "named=2", **params)
    code, _, err = command.wait()
    assert code == 0, err
    rows = sorted(json.loads(line)["value"] for line in out.read_text().splitlines())
    assert rows == [
        [n, f"name{customer}" if customer < known else None, n % with_lookups.PRICES + 0.5]
        for n in range(ROWS)
        for customer in [n % with_lookups.CUSTOMERS]
    ]
