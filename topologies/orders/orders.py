"""The whole story: orders from Kafka, customers by change data capture from PostgreSQL, fraud to Kafka, all orders to Delta Lake.

Shows connectors. Each order goes on with the newest data of its customer. Out come all orders in `out/orders`, a table of Delta
Lake, and alerts: cards with more than five orders, or more than 2 000 euros, within a minute
go to the topic `alerts`. With checkpoints each order counts once everywhere, through crashes and while units grow.

    python topologies/orders/servers.py            # Kafka and PostgreSQL without containers; or: docker compose up
    python topologies/orders/produce.py            # in another terminal: orders, and customers who move
    esault run topologies/orders/orders.py --checkpoint 1 --ui 8080
"""

from esault import Bolt, Topology
from esault.sinks import DeltaSink, KafkaSink
from esault.sources import KafkaSource, PostgresChanges
from esault.windows import TumblingWindow

__all__ = ["topology"]

COLUMNS = {"customer": int, "id": int, "card": str, "cents": int, "at": float, "name": str, "city": str}


class Spending(Bolt):
    """One card in one minute."""

    def __init__(self):
        self.orders, self.cents = 0, 0

    def process(self, key, value):
        self.orders += 1
        self.cents += value["cents"]

    def finish(self):
        if self.orders > 5 or self.cents > 200_000:
            self.emit(self.key, {"from": self.window.start, "orders": self.orders, "cents": self.cents})


def with_customer(pair):
    """The order, and what is known of its customer."""
    order, customer = pair
    known = customer or {"name": None, "city": None}
    return {**order, "name": known["name"], "city": known["city"]}


def topology(
    kafka: str = "localhost:9092",
    postgres: str = "host=localhost dbname=shop user=shop password=shop",
    out: str = "out/orders",
    until_end: bool = False,
    name: str = "orders",
) -> Topology:
    """Return it. `until_end`: end with what is there now, for tests."""
    t = Topology(name)
    orders = t.spout(
        "orders",
        KafkaSource("orders", kafka, key_deserializer=int, until="end" if until_end else None),
        parallelism=2,
        max_parallelism=4,
        time=lambda order: order["at"],  # here, so that each partition has a watermark of its own
        lateness=10,
        idle=60,  # a partition without orders for a minute is not waited for
    )
    changes = PostgresChanges(postgres, "customers", slot="orders_customers", until="now" if until_end else None)
    customers = t.spout("customers", changes)
    known = orders.join_table("with_customer", customers, missing="wait", wait_most=1000).map(with_customer)
    known.sink("orders-table", DeltaSink(out, COLUMNS, mode="append"))
    # From the orders themselves: event time does not go on behind a join with a stream that has none.
    cards = orders.key_by(lambda order: order["card"])
    spending = cards.window("spending", Spending, TumblingWindow(60))
    spending.sink("alerts", KafkaSink("alerts", kafka, partitions=2, guarantee="exactly-once"))
    return t
