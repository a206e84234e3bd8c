"""One RabbitMQ for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import rabbitmq_server


@pytest.fixture(scope="session")
def server() -> Iterator[rabbitmq_server.Server]:
    pytest.importorskip("pika", reason="pika is not installed: pip install 'esault[rabbitmq]'")
    try:
        started = rabbitmq_server.running()
        running = started.__enter__()
    except rabbitmq_server.NotToBeHadError as error:
        pytest.skip(str(error))
    try:
        yield running
    finally:
        started.__exit__(None, None, None)
