"""Starts Kafka and PostgreSQL without containers, as the tests do, and ends them with Ctrl-C.

Needs Java, Maven and PostgreSQL: apt-get install maven postgresql. In a checkout; elsewhere take compose.yaml.
"""

import contextlib
import signal
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "shared"))
import kafka_broker
import postgres_server


def main() -> None:
    """Start both, and say where they are."""
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    with contextlib.ExitStack() as servers:
        kafka = servers.enter_context(kafka_broker.running())
        kafka.topic(4, "orders")
        postgres = servers.enter_context(postgres_server.running())
        print(f"Kafka: {kafka.servers}\nPostgreSQL: {postgres.dsn}\n")
        print(f"python topologies/orders/produce.py --kafka {kafka.servers} --postgres '{postgres.dsn}'")
        there = f"--set kafka={kafka.servers} --set postgres='{postgres.dsn}'"
        print(
            f"esault run topologies/orders/orders.py --checkpoint 1 --ui 8080 {there}\n\nCtrl-C ends them.", flush=True
        )
        ended.wait()


if __name__ == "__main__":
    main()
