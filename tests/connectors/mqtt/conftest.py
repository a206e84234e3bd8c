"""One mosquitto for all tests of this folder."""

from __future__ import annotations

import held
import mosquitto_server
import pytest


@pytest.fixture(scope="module")
def broker() -> mosquitto_server.Broker:
    found: mosquitto_server.Broker = held.server(mosquitto_server, "paho.mqtt.client")
    return found
