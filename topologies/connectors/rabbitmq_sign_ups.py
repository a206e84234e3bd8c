"""Sign-ups from a queue of RabbitMQ: a greeting for each into another queue, and how many there are of each country.

Shows `RabbitMQSource` and `RabbitMQSink`. Out come messages in the queue `greetings`, and in `out/countries.jsonl` a line with the new
count of its country for each sign-up. What was not processed when a process died comes again: at least once.

    rabbitmq-server                        # in another terminal; apt-get install rabbitmq-server
    rabbitmqadmin declare queue name=sign-ups durable=true
    rabbitmqadmin publish routing_key=sign-ups payload='{"name": "Ada", "country": "GB"}'
    esault run topologies/connectors/rabbitmq_sign_ups.py
    rabbitmqadmin get queue=greetings      # meanwhile, in another terminal
"""

from esault import Topology
from esault.sinks import JsonLines, RabbitMQSink
from esault.sources import RabbitMQSource

__all__ = ["topology"]


def topology(
    url: str = "amqp://guest:guest@localhost:5672/%2F",
    until: str | None = None,
    out: str = "out/countries.jsonl",
    name: str = "sign_ups",
) -> Topology:
    """Return it. `until="empty"`: end when no message is ready."""
    t = Topology(name)
    sign_ups = t.spout("sign-ups", RabbitMQSource("sign-ups", url, until=until), max_parallelism=4)
    greetings = sign_ups.map(lambda person: {"to": person["name"], "text": f"Welcome, {person['name']}!"})
    greetings.sink("greetings", RabbitMQSink("greetings", url, declare=True))
    countries = sign_ups.key_by(lambda person: person["country"])
    countries.reduce("count", lambda count, person: count + 1, initial=0).sink("countries", JsonLines(out))
    return t
