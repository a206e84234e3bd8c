"""One PostgreSQL for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import postgres_server
import pytest


@pytest.fixture(scope="session")
def server() -> Iterator[postgres_server.Server]:
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'esault[postgres]'")
    try:
        started = postgres_server.running()
        running = started.__enter__()
    except postgres_server.NotToBeHadError as error:
        pytest.skip(str(error))
    try:
        yield running
    finally:
        started.__exit__(None, None, None)
