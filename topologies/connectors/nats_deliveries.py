"""Deliveries of a stream of NATS JetStream, counted by city; those that are late go to another stream.

Shows `NatsSource` and `NatsSink`. Out comes the stream `LATE` with a message for each late delivery, and a line with its number of
deliveries for each city; with checkpoints each delivery counts once.

    nats-server -js                                     # in another terminal; apt-get install nats-server
    nats stream add DELIVERIES --subjects 'delivered.>' --defaults
    nats pub delivered.bonn '{"parcel": 1, "city": "Bonn", "minutes_late": 12}'
    esault run topologies/connectors/nats_deliveries.py --checkpoint 1
    nats stream view LATE                               # meanwhile, in another terminal
"""

from esault import Topology
from esault.sinks import JsonLines, NatsSink
from esault.sources import NatsSource

__all__ = ["topology"]


def topology(
    url: str = "nats://localhost:4222",
    until: str | None = None,
    out: str = "cities.jsonl",
    name: str = "nats_deliveries",
) -> Topology:
    """Return it. `until="end"`: end with the messages that are there now."""
    t = Topology(name)
    deliveries = t.spout("deliveries", NatsSource("DELIVERIES", url, until=until), parallelism=1)
    late = deliveries.filter(lambda delivery: delivery["minutes_late"] > 10)
    late.sink("late", NatsSink("LATE", "late", url, key_header="Subject", declare=True))
    cities = deliveries.key_by(lambda delivery: delivery["city"])
    counts = cities.reduce("counts", lambda number, delivery: number + 1, initial=0)
    counts.sink("cities", JsonLines(out, "replace"))
    return t
