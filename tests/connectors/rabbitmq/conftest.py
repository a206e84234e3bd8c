"""One RabbitMQ for all tests of this folder."""

from __future__ import annotations

import held
import pytest
import rabbitmq_server


@pytest.fixture(scope="module")
def server() -> rabbitmq_server.Server:
    found: rabbitmq_server.Server = held.server(rabbitmq_server, "pika")
    return found
