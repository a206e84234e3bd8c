"""Each program of topologies/connectors, run by its command against the real server: what comes out is what must."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import json
import urllib.request
from collections import Counter
from decimal import Decimal
from pathlib import Path

import held
import pytest
from http_feed import feeding
from ports import free_port
from web_socket_feed import serving

pytestmark = pytest.mark.slow
FOLDER = Path(__file__).parents[2] / "topologies" / "connectors"
CHECKPOINT = ("--checkpoint", "0.2", "--policy", "none")


@contextlib.contextmanager
def started(module, library):
    """The server of a module of tests/shared."""
    pytest.importorskip(library)
    with contextlib.ExitStack() as stack:
        try:
            server = stack.enter_context(module.running())
        except module.NotToBeHadError as error:
            pytest.skip(str(error))
        yield server


@pytest.fixture
def rabbitmq():
    import rabbitmq_server

    return held.server(rabbitmq_server, "pika")


@pytest.fixture
def postgres():
    import postgres_server

    return held.server(postgres_server, "psycopg")


def place(file):
    return f"{FOLDER / file}:topology"


def finished(command, file, *options, **params):
    code, _, err = command.run(place(file), "--policy", "none", *options, **params)
    assert code == 0, err


def test_redis_orders(command):
    import redis_server

    with started(redis_server, "redis") as server:
        server.client.hset("price:tea", "cents", 250)
        server.client.hset("price:cup", "cents", 900)
        for product, pieces in [("tea", 2), ("cup", 1), ("pot", 5), ("tea", 3)]:
            server.client.xadd("orders", {"product": product, "pieces": pieces})
        finished(command, "redis_orders.py", "--checkpoint", "0.2", url=server.url, until="end")
        totals = [(entry["product"], int(entry["cents"])) for entry in server.entries("totals")]
        assert sorted(totals) == [("cup", 900), ("tea", 500), ("tea", 1250)]


def test_rabbitmq_sign_ups(command, rabbitmq, tmp_path):
    people = [{"name": f"n{n}", "country": "GB" if n % 3 else "NL"} for n in range(9)]
    with rabbitmq.channel() as channel:
        channel.queue_declare("sign-ups", durable=True)
    rabbitmq.send("sign-ups", *(json.dumps(person).encode() for person in people))
    finished(command, "rabbitmq_sign_ups.py", url=rabbitmq.url, until="empty", out=tmp_path / "countries.jsonl")
    greetings = [json.loads(body)["text"] for _, body in rabbitmq.messages("greetings")]
    assert sorted(greetings) == [f"Welcome, n{n}!" for n in range(9)]
    rows = [json.loads(line) for line in (tmp_path / "countries.jsonl").read_text().splitlines()]
    assert {row["key"]: row["value"] for row in rows} == {"GB": 6, "NL": 3}


def test_mqtt_sensors(command):
    import mosquitto_server

    with started(mosquitto_server, "paho.mqtt.client") as broker:
        reader = mosquitto_server.Reader(broker, "alarms/#")
        params = {"host": "127.0.0.1", "port": broker.port, "client_id": command.name}
        command.start(place("mqtt_sensors.py"), "--policy", "none", **params)
        command.running()

        def probed():
            broker.send("plant/probe/temperature", b'{"celsius": 99}')
            return any("probe" in topic for topic, _ in reader.rows())

        command.until(probed)  # it has subscribed
        broker.send("plant/hall/temperature", *(b'{"celsius": %d}' % degrees for degrees in (20, 81, 85, 78, 70, 90)))
        command.until(lambda: sum("hall" in topic for topic, _ in reader.rows()) >= 3)
        code, _, err = command.stop()
        assert code == 0, err
        alarms = [(alarm["hot"], alarm["celsius"]) for topic, alarm in reader.rows() if "hall" in topic]
        assert alarms == [(True, 81), (False, 70), (True, 90)]


def test_http_orders(command, other_command, tmp_path):
    pytest.importorskip("aiohttp")
    import aiohttp

    port, hook, events, out = free_port(), free_port(), free_port(), tmp_path / "large.jsonl"
    receiver = place("http_orders.py").replace(":topology", ":receiver")
    other_command.start(receiver, "--policy", "none", port=hook, out=out)
    url = f"http://127.0.0.1:{hook}/large"
    command.start(place("http_orders.py"), *CHECKPOINT, port=port, hook=url, events=events)
    other_command.running()
    command.running()

    def order(customer, euros):
        body = json.dumps({"customer": customer, "euros": euros}).encode()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/orders", body, timeout=60) as answer:
            assert answer.status == 200

    async def watched():
        found = []
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{events}/") as answer:
            for customer, euros in [("ada", 120), ("bob", 30), ("ada", 7)]:
                await asyncio.to_thread(order, customer, euros)
            while len(found) < 3:
                line = await answer.content.readline()
                if line.startswith(b"data: "):
                    found.append(json.loads(line[6:]))
        return found

    rows = [(row["key"], row["value"]) for row in asyncio.run(watched())]
    assert sorted(rows) == [("ada", 120), ("ada", 127), ("bob", 30)]
    for each in (command, other_command):
        code, _, err = each.stop()
        assert code == 0, err
    assert json.loads(out.read_text()) == {"key": "ada", "value": {"customer": "ada", "euros": 120}}


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_sse_edits(command, tmp_path):
    """The service hangs up behind every third event, and goes on behind the last id."""
    pytest.importorskip("aiohttp")
    wikis = ["nlwiki", "frwiki", "nlwiki", "nlwiki"]
    events = [{"type": "edit", "wiki": wikis[n % 4], "user": "u", "bot": n % 5 == 0} for n in range(20)]
    events[7] = {"type": "log", "wiki": "nlwiki", "user": "u", "bot": False}

    def answer(asked):
        begin = int(asked.get("Last-Event-ID", -1)) + 1
        sent = [f"id: {n}\ndata: {json.dumps(events[n])}\n\n".encode() for n in range(begin, min(20, begin + 3))]
        return (200, sent, {"Content-Type": "text/event-stream"}) if sent else (204, b"", {})

    with feeding(answer) as feed:
        finished(command, "sse_edits.py", "--checkpoint", "0.2", url=feed.url, out=tmp_path / "edits.jsonl")
    people = Counter(event["wiki"] for event in events if event["type"] == "edit" and not event["bot"])
    rows = [(row["key"], row["value"]) for row in lines(tmp_path / "edits.jsonl")]
    assert sorted(rows) == sorted((wiki, n) for wiki, count in people.items() for n in range(1, count + 1))


def test_web_socket_trades(command):
    pytest.importorskip("aiohttp")
    import aiohttp

    port, asked = free_port(), []

    def match(second, price, size, product="BTC-USD"):
        time = f"2026-02-03T09:{second // 60:02d}:{second % 60:02d}.500000Z"
        return {"type": "match", "product_id": product, "time": time, "price": str(price), "size": str(size)}

    # in another order than that of their times, within the lateness; the last ones close the minutes
    trades = [(1, 100, 1), (5, 130, 2), (4, 90, 0.5), (59, 110, 1), (61, 50, 1), (60, 40, 3), (200, 1, 1)]

    async def talk(connection):
        asked.append(await connection.receive_json())
        await connection.send_json({"type": "subscriptions"})
        for each in trades:
            await connection.send_json(match(*each))
            await connection.send_json(match(*each, product="ETH-USD"))
        await connection.receive()

    async def candles():
        found = []
        async with aiohttp.ClientSession() as session, session.ws_connect(f"ws://127.0.0.1:{port}/") as connection:
            while len(found) < 4:
                found.append(json.loads((await connection.receive(120)).data)["data"])
        return found

    with serving(talk) as url:
        command.start(place("web_socket_trades.py"), *CHECKPOINT, url=url, port=port)
        command.running()
        found = asyncio.run(candles())
        code, _, err = command.stop()
    assert code == 0, err
    assert asked[0]["type"] == "subscribe"
    begin = datetime.datetime(2026, 2, 3, 9, tzinfo=datetime.timezone.utc).timestamp()
    first = {"from": begin, "open": 100, "high": 130, "low": 90, "close": 110, "volume": 4.5}
    second = {"from": begin + 60, "open": 40, "high": 50, "low": 40, "close": 50, "volume": 4}
    for product in ("BTC-USD", "ETH-USD"):
        assert [each["value"] for each in found if each["key"] == product] == [first, second]


def test_polled_earthquakes(command, tmp_path):
    """The same answers come again and again: an earthquake is told once, and again when its magnitude changes."""
    pytest.importorskip("aiohttp")

    def quake(id, magnitude):
        said = {"mag": magnitude, "place": f"near {id}", "time": 1_700_000_000_000}
        return {"id": id, "properties": said, "geometry": {"coordinates": [4.5, 52.0, 10.0]}}

    now = [quake("a", 3.0), quake("b", 1.0), quake("c", None)]
    out = tmp_path / "quakes.jsonl"
    with feeding(lambda asked: (200, {"type": "FeatureCollection", "features": now}, {})) as feed:
        command.start(place("polled_earthquakes.py"), *CHECKPOINT, url=feed.url, every=0.05, out=out)
        command.until(lambda: len(lines(out)) == 1)
        now = [*now, quake("d", 4.0)]
        command.until(lambda: len(lines(out)) == 2)
        now = [quake("a", 3.2), *now[1:]]
        command.until(lambda: len(lines(out)) == 3)
        code, _, err = command.stop()
    assert code == 0, err
    assert [(row["key"], row["value"]["magnitude"]) for row in lines(out)] == [("a", 3.0), ("d", 4.0), ("a", 3.2)]
    where = {"place": "near a", "latitude": 52.0, "longitude": 4.5, "km": 10.0}
    assert lines(out)[0]["value"] == {"at": 1_700_000_000.0, "magnitude": 3.0, **where}


def test_postgres_accounts(command, postgres):
    postgres.ask("create table accounts (id int primary key, city text, euros numeric)")
    postgres.ask("insert into accounts values (1, 'Delft', 50), (2, 'Rome', 70.5), (3, 'Delft', 5), (4, 'Oslo', 9)")
    command.start(place("postgres_accounts.py"), *CHECKPOINT, dsn=postgres.dsn)
    command.running()

    def totals():
        there = postgres.ask("select to_regclass('city_totals') is not null")[0][0]
        return dict(postgres.ask("select city, euros from city_totals")) if there else {}

    command.until(lambda: totals() == {"Delft": Decimal(55), "Rome": Decimal("70.5"), "Oslo": Decimal(9)})
    postgres.ask("update accounts set city = 'Rome', euros = 51 where id = 1")
    postgres.ask("delete from accounts where id = 4")
    command.until(lambda: totals() == {"Delft": Decimal(5), "Rome": Decimal("121.5"), "Oslo": Decimal(0)})
    code, _, err = command.stop()
    assert code == 0, err


def test_rabbitmq_invoices(command, rabbitmq):
    import rabbitmq_server

    rows = [("ada", 1200), ("bob", 50), ("ada", -1000), ("ada", 30)]
    with rabbitmq.channel() as channel:
        channel.queue_declare("invoices", durable=True, arguments={"x-queue-type": "stream"})
    rabbitmq.send("invoices", *(json.dumps({"customer": who, "cents": cents}).encode() for who, cents in rows))
    user, password = rabbitmq_server.USER, rabbitmq_server.PASSWORD
    streams = f"rabbitmq-stream://{user}:{password}@127.0.0.1:{rabbitmq.stream_port}/%2F"
    params = {"url": rabbitmq.url, "streams": streams, "until": "end"}
    finished(command, "rabbitmq_invoices.py", "--checkpoint", "0.2", **params)
    found = []
    with rabbitmq.channel() as channel:
        channel.basic_qos(prefetch_count=10)
        offset = {"x-stream-offset": "first"}
        for method, properties, body in channel.consume("balances", arguments=offset, inactivity_timeout=20):
            assert method is not None, found
            found.append(json.loads(body))
            channel.basic_ack(method.delivery_tag)
            if len(found) == 4:
                break
    assert sorted(found) == [50, 200, 230, 1200]


def test_inbox_with_customers(command, postgres, tmp_path):
    (tmp_path / "inbox").mkdir()
    for half in range(2):
        orders = [json.dumps({"order": n, "customer": n % 4}) for n in range(half, 12, 2)]
        (tmp_path / "inbox" / f"{half}.jsonl").write_text("\n".join(orders))
    postgres.ask("create table customers (id int primary key, city text)")
    postgres.ask("insert into customers values (0, 'Delft'), (1, 'Rome'), (2, 'Delft')")
    out = tmp_path / "cities.jsonl"
    params = {"dsn": postgres.dsn, "inbox": tmp_path / "inbox", "every": "none", "out": out}
    finished(command, "inbox_with_customers.py", "--checkpoint", "0.2", **params)
    rows = [(row["key"], row["value"]) for row in lines(out)]
    assert sorted(rows) == [*(("Delft", n) for n in range(1, 7)), *(("Rome", n) for n in range(1, 4))]


def test_services_watched(command, tmp_path):
    pytest.importorskip("aiohttp")
    pytest.importorskip("cronsim")
    status = 200

    def times(url):
        return [row["value"]["times_away"] for row in lines(tmp_path / "days.jsonl") if row["key"] == url]

    with feeding(lambda asked: (status, "", {})) as feed, feeding(lambda asked: (404, "", {})) as other:
        params = {"services": f"{feed.url},{other.url}", "every": 0.05, "morning": "* * * * * *", "out": tmp_path}
        command.start(place("services_watched.py"), *CHECKPOINT, **params)
        command.until(lambda: feed.asked and other.asked)
        status = 503
        command.until(lambda: len(lines(tmp_path / "changes.jsonl")) == 1)
        status = 200
        command.until(lambda: len(lines(tmp_path / "changes.jsonl")) == 2)
        command.until(lambda: sum(times(feed.url)) == 1 and times(other.url))  # it is morning each second, here
        code, _, err = command.stop()
    assert code == 0, err
    assert [(row["key"], row["value"]["well"]) for row in lines(tmp_path / "changes.jsonl")] == [
        (feed.url, False),
        (feed.url, True),
    ]
    assert (sum(times(feed.url)), sum(times(other.url))) == (1, 0)


def test_visits_to_delta(command, tmp_path):
    pytest.importorskip("deltalake")
    import esault

    (tmp_path / "in").mkdir()
    for day in (3, 4):
        lines = [json.dumps({"user": f"u{n}", "page": "/tea", "at": f"2026-02-0{day}T0{n}:00:00Z"}) for n in range(5)]
        (tmp_path / "in" / f"{day}.jsonl").write_text("\n".join(lines))
    finished(command, "visits_to_delta.py", "--checkpoint", "0.2")
    rows = esault.read(tmp_path / "out" / "visits").to_pylist()
    assert sorted((row["user"], row["day"]) for row in rows) == [
        (f"u{n}", datetime.date(2026, 2, day)) for n in range(5) for day in (3, 4)
    ]
    assert {folder.name for folder in (tmp_path / "out" / "visits").glob("day=*")} == {
        "day=2026-02-03",
        "day=2026-02-04",
    }


def test_csv_to_parquet(command, tmp_path):
    pytest.importorskip("pyarrow")
    import esault

    (tmp_path / "in").mkdir()
    for number in range(3):
        lines = [f"item{n},{n},{n - 1}.50,2026-02-03" for n in range(4)]
        (tmp_path / "in" / f"{number}.csv").write_text("\n".join(["item,pieces,price,day", *lines]))
    finished(command, "csv_to_parquet.py", "--checkpoint", "0.2", "--parallelism", "sales=2")
    rows = esault.read(tmp_path / "out" / "sales").to_pylist()
    assert sorted((row["item"], row["pieces"], row["cents"]) for row in rows) == sorted(
        [("item1", 1, 50), ("item2", 2, 150), ("item3", 3, 250)] * 3
    )
    bad = [json.loads(line)["value"]["item"] for line in (tmp_path / "out" / "bad.jsonl").read_text().splitlines()]
    assert bad == ["item0"] * 3


def test_nats_deliveries(command, tmp_path):
    import nats_server

    with started(nats_server, "nats") as server:

        async def make(js):
            await js.add_stream(name="DELIVERIES", subjects=["delivered.>"])
            for n in range(9):
                row = {"parcel": n, "city": "Bonn" if n % 3 else "Celle", "minutes_late": n * 5}
                await js.publish("delivered.all", json.dumps(row).encode())

        server.ask(make)
        params = {"url": server.url, "until": "end", "out": tmp_path / "cities.jsonl"}
        finished(command, "nats_deliveries.py", "--checkpoint", "0.2", **params)
        assert sorted(json.loads(message.data)["parcel"] for message in server.messages("LATE")) == [3, 4, 5, 6, 7, 8]
    rows = [json.loads(line) for line in (tmp_path / "cities.jsonl").read_text().splitlines()]
    assert sorted((row["key"], row["value"]) for row in rows)[-1:] == [("Celle", 3)]
    assert max(row["value"] for row in rows if row["key"] == "Bonn") == 6


def test_s3_parcels(command, monkeypatch):
    import io

    import s3_server

    with started(s3_server, "s3fs") as server:
        import pyarrow.parquet as pq

        from esault.sinks.landing import parts

        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        server.client.create_bucket(Bucket="parcels")
        for half in range(2):
            lines = [json.dumps({"id": n, "grams": 500 * n, "city": "Bonn"}) for n in range(half, 10, 2)]
            server.put("parcels", f"in/{half}.jsonl", "\n".join(lines))
        finished(command, "s3_parcels.py", "--checkpoint", "0.2")
        keys = [str(part).partition("s3://parcels/")[2] for part in parts("s3://parcels/heavy")]
        tables = [pq.read_table(io.BytesIO(server.body("parcels", key))) for key in keys]
        assert sorted(row["id"] for table in tables for row in table.to_pylist()) == [5, 6, 7, 8, 9]
