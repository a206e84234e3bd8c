"""The whole story of topologies/orders on real servers: scaled, killed and resumed; every order and every alert once."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import depth
import held
import kafka_broker
import postgres_server
import pytest
from test_acknowledged import kill_run

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "topologies" / "orders"))
import produce  # noqa: E402

pytestmark = pytest.mark.slow
PLACE = f"{ROOT / 'topologies' / 'orders' / 'orders.py'}:topology"
OPTIONS = ("--checkpoint", "0.4", "--policy", "none")
ORDERS, PEOPLE = 1200, 30


@pytest.fixture
def servers():
    pytest.importorskip("deltalake")
    return held.server(kafka_broker, "confluent_kafka"), held.server(postgres_server, "psycopg")


def alerts(orders):
    """The alerts of the batch answer: (card, beginning of the minute) -> orders and cents."""
    spent: dict = defaultdict(lambda: [0, 0])
    for order in orders:
        of = spent[order["card"], order["at"] // 60 * 60]
        of[0] += 1
        of[1] += order["cents"]
    return {key: tuple(of) for key, of in spent.items() if of[0] > 5 or of[1] > 200_000}


def test_every_order_and_every_alert_is_there_once(command, servers, tmp_path):
    from confluent_kafka import Producer

    import esault

    kafka, postgres = servers
    kafka.topic(4, "orders")
    produce.customers(postgres.dsn, PEOPLE)
    orders = list(produce.orders(ORDERS, PEOPLE))
    producer = Producer({"bootstrap.servers": kafka.servers})

    def send(some):
        for order in some:
            producer.produce("orders", json.dumps(order).encode(), key=str(order["customer"]).encode())
        assert producer.flush(60) == 0

    out = tmp_path / "orders"

    def landed():
        try:
            return esault.read(out).num_rows
        except Exception:  # no version yet
            return 0

    params = {"kafka": kafka.servers, "postgres": postgres.dsn, "out": out}
    command.start(PLACE, *OPTIONS, **params)
    command.running()
    # Orders that wait for their customer are behind the watermark when it comes.
    command.until(lambda: command.status()["units"][1]["tuples_out"] == PEOPLE)
    send(orders[:400])
    command.until(lambda: landed() >= 400)
    command.until(lambda: command.scaled("orders", 3))
    command.until(lambda: command.scaled("spending", 2))
    postgres.ask("update customers set city = 'Moved' where id = 3")
    send(orders[400:800])
    command.processes("with_customer/")[0].kill()
    command.until(lambda: landed() >= 800)
    kill_run(command)
    send(orders[800:])
    command.start(PLACE, *OPTIONS, "--resume", "--set", "until_end=true", **params)
    code, _, err = command.wait()
    assert code == 0, err
    found = esault.read(out).to_pylist()
    assert Counter(row["id"] for row in found) == Counter(range(ORDERS))
    assert all(row["name"] == f"customer {row['customer']}" for row in found)
    assert {row["city"] for row in found if row["customer"] == 3 and row["id"] >= 800} <= {"Moved"}
    told = [
        (json.loads(m.key()) if m.key()[:1] == b'"' else m.key().decode(), json.loads(m.value()))
        for m in kafka.messages("alerts")
    ]
    assert Counter((card, alert["from"]) for card, alert in told) == Counter(list(alerts(orders)))
    assert {(card, alert["from"]): (alert["orders"], alert["cents"]) for card, alert in told} == alerts(orders)


@pytest.mark.skipif(depth.PROFILE != "deep", reason="starts Kafka once more: make test-deep")
def test_servers_with_the_settings_of_the_compose_file_carry_it(command, tmp_path):
    """By the commands at the top of orders.py. There is no topic yet: the broker makes it, as that of the file does."""
    yaml = pytest.importorskip("yaml")
    from confluent_kafka.admin import AdminClient

    import esault

    for library in ("confluent_kafka", "psycopg", "deltalake"):
        pytest.importorskip(library)
    services = yaml.safe_load((ROOT / "topologies/orders/compose.yaml").read_text())["services"]

    def properties(port, controller):
        told = kafka_broker.properties_of(services["kafka"]["environment"])
        return {name: value.replace("9092", str(port)).replace("9093", str(controller)) for name, value in told.items()}

    asked = dict(each.split("=") for each in services["postgres"]["command"].split()[2::2])
    try:
        with kafka_broker.running(properties=properties) as kafka, postgres_server.running(**asked) as postgres:
            postgres.ask("create database shop")
            dsn = postgres.dsn.replace("dbname=postgres", "dbname=shop")
            program = [sys.executable, str(ROOT / "topologies/orders/produce.py"), "--orders", "600", "--rate", "0"]
            made = [*program, "--kafka", kafka.servers, "--postgres", dsn]
            done = subprocess.run(made, capture_output=True, text=True, timeout=120, check=False)
            assert done.returncode == 0, done.stderr
            topics = AdminClient({"bootstrap.servers": kafka.servers}).list_topics(timeout=20).topics
            assert len(topics["orders"].partitions) == 4
            params = {"kafka": kafka.servers, "postgres": dsn, "out": tmp_path / "orders", "until_end": True}
            code, _, err = command.run(PLACE, *OPTIONS, **params)
            assert code == 0, err
            found = [row["id"] for row in esault.read(tmp_path / "orders").to_pylist()]
            assert sorted(found) == list(range(600))
            assert kafka.messages("alerts")
    except (kafka_broker.NotToBeHadError, postgres_server.NotToBeHadError) as error:
        pytest.skip(str(error))
