"""`PostgresChanges` that is open, and rows of it."""

from __future__ import annotations

import time

from waiting import PATIENCE

from esault.sources import PostgresChanges
from esault.topology.context import Context


def opened(server, tables, position=None, **options):
    """One of these tables, behind `position`, with a slot that is named by the first."""
    first = tables if isinstance(tables, str) else tables[0]
    source = PostgresChanges(server.dsn, tables, slot=f"s_{first}", **options)
    source.check()
    source.context = Context("changes")
    source.open(source.context)
    if position is not None:
        source.seek(position)
    return source


def rows_of(source, wanted, limit=100):
    """At least so many rows."""
    found: list = []
    end = time.monotonic() + PATIENCE
    while len(found) < wanted:
        assert time.monotonic() < end, found
        found += source.read(limit)
        time.sleep(0.005)
    return found


def drop_slots(server, name):
    """Drop the slots and publications of a table's readers; a slot that is just being left stays."""
    slots = "select slot_name from pg_replication_slots where not active and slot_name like %s"
    for slot in server.ask(slots, f"s_{name}%"):
        server.ask("select pg_drop_replication_slot(%s)", *slot)
    server.ask(f"drop publication if exists s_{name}")
