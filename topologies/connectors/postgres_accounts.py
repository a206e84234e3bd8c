"""The accounts of a bank, as they change in PostgreSQL: the sum of each city, kept in another table.

Shows `PostgresChanges` and `PostgresSink`: a table that is read as a stream, and a stream that is a table. Out comes the table
`city_totals`, a row for each city. An account that changes is taken out of its old city's sum and put into its new one's; one that is
removed is taken out. With checkpoints each change counts once.

    psql shop -c "create table accounts (id int primary key, city text, euros numeric)"   # of a server with wal_level = logical
    psql shop -c "insert into accounts values (1, 'Delft', 50), (2, 'Rome', 70), (3, 'Delft', 5)"
    esault run topologies/connectors/postgres_accounts.py --checkpoint 1
    psql shop -c "update accounts set city = 'Rome' where id = 1"; sleep 2; psql shop -c "select * from city_totals"
"""

from decimal import Decimal

from esault import Bolt, Topology, by_key
from esault.sinks import PostgresSink
from esault.sources import PostgresChanges

__all__ = ["topology"]


class Differences(Bolt):
    """One account: what a change takes from a city and adds to one."""

    def __init__(self):
        self.before = None

    def process(self, key, value):
        if self.before is not None:
            self.emit(self.before["city"], -self.before["euros"])
        if value is not None:  # else it was removed
            self.emit(value["city"], value["euros"])
        self.before = value


def topology(
    dsn: str = "host=localhost dbname=shop user=shop password=shop", until: str | None = None, name: str = "accounts"
) -> Topology:
    """Return it. `until="now"`: end with what has been committed by now."""
    t = Topology(name)
    accounts = t.spout("accounts", PostgresChanges(dsn, "accounts", slot="city_totals", until=until))
    differences = accounts.bolt("differences", Differences, grouping=by_key(), max_parallelism=4)
    totals = differences.reduce("totals", lambda total, euros: total + euros, initial=Decimal(0))
    totals.sink("cities", PostgresSink(dsn, "city_totals", {"city": str, "euros": Decimal}, primary_key="city"))
    return t
