"""One Redis for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis_server


@pytest.fixture(scope="session")
def server() -> Iterator[redis_server.Server]:
    pytest.importorskip("redis", reason="redis-py is not installed: pip install 'esault[redis]'")
    try:
        started = redis_server.running()
        running = started.__enter__()
    except redis_server.NotToBeHadError as error:
        pytest.skip(str(error))
    try:
        yield running
    finally:
        started.__exit__(None, None, None)
