"""Changes of a table of PostgreSQL, counted by key, and the table as it is in another one."""

from __future__ import annotations

from esault import Bolt, Topology, by_key
from esault.sinks import JsonLines, PostgresSink
from esault.sources import PostgresChanges


class Count(Bolt):
    def __init__(self) -> None:
        self.changes = 0

    def process(self, key, value):
        self.changes += 1
        self.emit(key, self.changes)


def topology(dsn: str, out: str, name: str = "from_postgres") -> Topology:
    """Return it. It ends by `stop`."""
    t = Topology(name)
    orders = t.spout("orders", PostgresChanges(dsn, "orders", slot="orders_slot"))
    orders.bolt("count", Count, grouping=by_key(), max_parallelism=4).sink("counts", JsonLines(out))
    orders.sink("copy", PostgresSink(dsn, "copy", {"id": "int", "city": str, "n": "int"}, primary_key="id"))
    return t
