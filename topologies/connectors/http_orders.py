"""Orders that a shop POSTs: large ones are POSTed on, and everyone may watch what each customer has spent.

Shows `HttpServerSource`, `WebhookSink` and `SseSink`. Out come a POST for each order of more than 100 euros, with an Idempotency-Key
that stays when it comes again, and server-sent events with the new total of a customer. `receiver` takes such POSTs, and writes them
to `out/large.jsonl`.

    esault run topologies/connectors/http_orders.py:receiver               # in place of the service that gets large orders
    esault run topologies/connectors/http_orders.py --checkpoint 1         # in another terminal, as those that follow
    curl -N localhost:8090
    curl localhost:8080/orders -d '{"customer": "ada", "euros": 120}'
"""

from esault import Topology
from esault.sinks import JsonLines, SseSink, WebhookSink
from esault.sources import HttpServerSource

__all__ = ["receiver", "topology"]


def topology(
    port: int = 8080, hook: str = "http://localhost:9000/large", events: int = 8090, name: str = "http_orders"
) -> Topology:
    """Return it; it has no end."""
    t = Topology(name)
    orders = t.spout("orders", HttpServerSource(port=port, path="/orders", key="customer", answer="durable"))
    orders.filter(lambda order: order["euros"] > 100).sink("large", WebhookSink(hook))
    spent = orders.reduce("spent", lambda total, order: total + order["euros"], initial=0)
    spent.sink("events", SseSink(events))
    return t


def receiver(port: int = 9000, out: str = "out/large.jsonl", name: str = "large_orders") -> Topology:
    """Return it; it has no end."""
    t = Topology(name)
    t.spout("large", HttpServerSource(port=port, path="/large", key="customer")).sink("lines", JsonLines(out))
    return t
