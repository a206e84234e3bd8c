"""Invoices of a stream of RabbitMQ, and what each customer owes by now to another stream.

Shows `RabbitMQStreamSource` and `RabbitMQStreamSink`. Out comes the stream `balances`: a message with the new balance of a customer for
each invoice and each payment (a negative amount). With checkpoints each counts once, through crashes too.

    rabbitmq-server                        # in another terminal; apt-get install rabbitmq-server
    rabbitmq-plugins enable rabbitmq_stream
    rabbitmqadmin declare queue name=invoices queue_type=stream durable=true
    rabbitmqadmin publish routing_key=invoices payload='{"customer": "ada", "cents": 1200}'
    esault run topologies/connectors/rabbitmq_invoices.py --checkpoint 1
"""

from esault import Topology
from esault.sinks import RabbitMQStreamSink
from esault.sources import RabbitMQStreamSource

__all__ = ["topology"]


def topology(
    url: str = "amqp://guest:guest@localhost:5672/%2F",
    streams: str = "rabbitmq-stream://guest:guest@localhost:5552/%2F",
    until: str | None = None,
    name: str = "rabbitmq_invoices",
) -> Topology:
    """Return it. `until="end"`: end with the invoices that are there now."""
    t = Topology(name)
    invoices = t.spout("invoices", RabbitMQStreamSource("invoices", url, until=until))
    by_customer = invoices.key_by(lambda invoice: invoice["customer"])
    balances = by_customer.reduce("balance", lambda cents, invoice: cents + invoice["cents"], initial=0)
    balances.sink("balances", RabbitMQStreamSink("balances", streams, declare=True))
    return t
