"""One Kafka broker for all tests of this folder."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator

import kafka_broker
import pytest


@pytest.fixture(autouse=True)
def _sockets_of_refused_connections() -> Iterator[None]:
    """Collected here: kafka-python leaves them to the collector, which would warn in another test."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="session")
def broker() -> Iterator[kafka_broker.Broker]:
    # Both before a check forks: each of its processes would load them anew.
    pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed: pip install 'esault[kafka]'")
    pytest.importorskip("kafka.admin", reason="kafka-python is not installed: pip install 'esault[kafka]'")
    try:
        started = kafka_broker.running()
        running = started.__enter__()
    except kafka_broker.NotToBeHadError as error:
        pytest.skip(str(error))
    try:
        yield running
    finally:
        started.__exit__(None, None, None)
