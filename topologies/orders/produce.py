"""Writes orders to Kafka, and has customers in PostgreSQL who move to another city now and then.

python topologies/orders/produce.py --orders 2000 --rate 200
"""

import argparse
import json
import random
import time

CITIES = ["Aachen", "Bonn", "Celle", "Dresden", "Essen"]


def customers(dsn: str, count: int) -> None:
    """Make the table, with this many customers."""
    import psycopg

    with psycopg.connect(dsn) as connection:
        connection.execute("create table if not exists customers (id int primary key, name text, city text)")
        rows = [(n, f"customer {n}", CITIES[n % 5]) for n in range(count)]
        with connection.cursor() as cursor:
            cursor.executemany("insert into customers values (%s, %s, %s) on conflict do nothing", rows)


def orders(count: int, people: int, seed: int = 1, start: float = 1_700_000_000.0):
    """Yield orders, half a second apart; one card of fifty is used far too often."""
    rng = random.Random(seed)
    for number in range(count):
        stolen = rng.random() < 0.15
        customer = 7 if stolen else rng.randrange(people)
        card = "card-stolen" if stolen else f"card-{customer}"
        yield {
            "id": number,
            "customer": customer,
            "card": card,
            "cents": rng.randrange(100, 9000),
            "at": start + number / 2,
        }


def main() -> None:
    """Write them at a rate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kafka", default="localhost:9092")
    parser.add_argument("--postgres", default="host=localhost dbname=shop user=shop password=shop")
    parser.add_argument("--orders", type=int, default=2000)
    parser.add_argument("--customers", type=int, default=50)
    parser.add_argument("--rate", type=float, default=200.0, help="orders a second; 0: at once")
    told = parser.parse_args()
    import psycopg
    from confluent_kafka import Producer

    customers(told.postgres, told.customers)
    producer = Producer({"bootstrap.servers": told.kafka})
    with psycopg.connect(told.postgres, autocommit=True) as connection:
        for order in orders(told.orders, told.customers):
            producer.produce("orders", json.dumps(order).encode(), key=str(order["customer"]).encode())
            producer.poll(0)
            if order["id"] % 100 == 99:
                moves = "update customers set city = %s where id = %s"
                connection.execute(moves, [random.choice(CITIES), random.randrange(told.customers)])
            if told.rate:
                time.sleep(1 / told.rate)
    producer.flush()
    print(f"{told.orders} orders")


if __name__ == "__main__":
    main()
