"""One NATS for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import nats_server
import pytest


@pytest.fixture(scope="session")
def server() -> Iterator[nats_server.Server]:
    pytest.importorskip("nats", reason="nats-py is not installed: pip install 'esault[nats]'")
    try:
        started = nats_server.running()
        running = started.__enter__()
    except nats_server.NotToBeHadError as error:
        pytest.skip(str(error))
    try:
        yield running
    finally:
        started.__exit__(None, None, None)
