"""One mosquitto for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import mosquitto_server
import pytest


@pytest.fixture(scope="session")
def broker() -> Iterator[mosquitto_server.Broker]:
    pytest.importorskip("paho.mqtt.client", reason="paho-mqtt is not installed: pip install 'esault[mqtt]'")
    try:
        started = mosquitto_server.running()
        running = started.__enter__()
    except mosquitto_server.NotToBeHadError as error:
        pytest.skip(str(error))
    try:
        yield running
    finally:
        started.__exit__(None, None, None)
