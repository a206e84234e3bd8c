"""One S3 for all tests of this folder, and a bucket for each."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
import s3_server


@pytest.fixture(scope="session")
def server() -> Iterator[s3_server.Server]:
    try:
        started = s3_server.running()
        running = started.__enter__()
    except s3_server.NotToBeHadError as error:
        pytest.skip(str(error))
    try:
        yield running
    finally:
        started.__exit__(None, None, None)


@pytest.fixture
def bucket(server: s3_server.Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """A new bucket; the environment says where it is."""
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    name = f"b-{uuid.uuid4().hex[:10]}"
    server.client.create_bucket(Bucket=name)
    return name
