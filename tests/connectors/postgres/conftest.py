"""One PostgreSQL for all tests of this folder."""

from __future__ import annotations

import held
import postgres_server
import pytest


@pytest.fixture(scope="module")
def server() -> postgres_server.Server:
    found: postgres_server.Server = held.server(postgres_server, "psycopg")
    return found
