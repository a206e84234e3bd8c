"""One Kafka broker for all tests of this folder."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator

import held
import kafka_broker
import pytest


@pytest.fixture(autouse=True)
def _sockets_of_refused_connections() -> Iterator[None]:
    """Collected here: kafka-python leaves them to the collector, which would warn in another test."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="module")
def broker() -> kafka_broker.Broker:
    # Both before a check forks: each of its processes would load them anew.
    found: kafka_broker.Broker = held.server(kafka_broker, "confluent_kafka", "kafka.admin")
    return found
