"""One Redis for all tests of this folder."""

from __future__ import annotations

import held
import pytest
import redis_server


@pytest.fixture(scope="module")
def server() -> redis_server.Server:
    found: redis_server.Server = held.server(redis_server, "redis")
    return found
