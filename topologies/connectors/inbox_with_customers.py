"""Orders in files that are put into a folder, each with the city of its customer, looked up in PostgreSQL.

Shows `Directory` and `PostgresLookup`. Out comes `out/cities.jsonl`: a line with the new number of orders of a city for each order.
Files are JSON lines. Write one under a name that begins with a dot, and rename it when it is whole.

    createdb shop                              # in another terminal; apt-get install postgresql
    psql shop -c 'create table customers (id int primary key, city text)'
    psql shop -c "insert into customers values (7, 'Delft'), (8, 'Rome')"
    mkdir -p inbox && echo '{"order": 1, "customer": 7}' > inbox/1.jsonl
    esault run topologies/connectors/inbox_with_customers.py --checkpoint 1
"""

import json

from esault import Topology
from esault.lookups import PostgresLookup
from esault.sinks import JsonLines
from esault.sources import Directory

__all__ = ["topology"]


def topology(
    inbox: str = "inbox",
    dsn: str = "dbname=shop",
    every: float | None = 1.0,
    out: str = "out/cities.jsonl",
    name: str = "inbox_with_customers",
) -> Topology:
    """Return it; it looks for new files every `every` seconds, and has no end, or with None ends with those that are there."""
    t = Topology(name)
    lines = t.spout("orders", Directory(inbox, pattern="*.jsonl", every=every), max_parallelism=4)
    # Rows of a key wait for each other: those of a file need not.
    orders = lines.map(json.loads).key_by(lambda order: order["customer"])
    customers = PostgresLookup(dsn, "customers", key="id", columns="city", expire_after_write=30)
    known = orders.enrich("customer", customers, of=lambda order: order["customer"], missing="drop")
    cities = known.key_by(lambda pair: pair[1])
    cities.reduce("count", lambda count, pair: count + 1, initial=0).sink("cities", JsonLines(out, mode="replace"))
    return t
