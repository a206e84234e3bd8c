"""One NATS for all tests of this folder."""

from __future__ import annotations

import held
import nats_server
import pytest


@pytest.fixture(scope="module")
def server() -> nats_server.Server:
    found: nats_server.Server = held.server(nats_server, "nats")
    return found
