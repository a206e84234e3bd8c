"""Orders with customers from PostgreSQL and prices from Redis, both looked up."""

from __future__ import annotations

from esault import Topology
from esault.lookups import PostgresLookup, RedisLookup
from esault.sinks import JsonLines
from esault.sources import Items, Paced

CUSTOMERS, PRICES = 50, 30


def topology(dsn: str, url: str, out: str, rows: int = 6000, name: str = "with_lookups") -> Topology:
    """Return it; `rows` come in three seconds. A fifth of the customers is not there."""
    t = Topology(name)
    orders = t.spout("orders", Paced(Items(lambda: ((n % 97, n) for n in range(rows))), rate=rows / 3))
    customers = PostgresLookup(dsn, "customers", key="id", columns="name", max_rows=20, expire_after_write=0.5)
    prices = RedisLookup("price:{}", url, type="string", max_rows=20, expire_after_write=0.5)
    named = orders.enrich("named", customers, lambda order: order % CUSTOMERS, max_parallelism=4)
    priced = named.enrich("priced", prices, lambda pair: pair[0] % PRICES, max_parallelism=4)
    priced.map(lambda pair: [*pair[0], pair[1]]).sink("out", JsonLines(out))
    return t
