"""One S3 for all tests of this folder, and a bucket for each."""

from __future__ import annotations

import uuid

import held
import pytest
import s3_server


@pytest.fixture(scope="module")
def server() -> s3_server.Server:
    found: s3_server.Server = held.server(s3_server)
    return found


@pytest.fixture
def bucket(server: s3_server.Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """A new bucket; the environment says where it is."""
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    name = f"b-{uuid.uuid4().hex[:10]}"
    server.client.create_bucket(Bucket=name)
    return name
