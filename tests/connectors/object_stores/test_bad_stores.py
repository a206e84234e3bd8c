"""Object stores whose TLS does not come about: a certificate that is not trusted or has expired, and a store that speaks none."""

from __future__ import annotations

import shutil
from types import SimpleNamespace

import pytest
from http_receiver import certificate_of
from tcp_proxy import Proxy

from esault import EsaultError, SourceError, Topology
from esault.object_store import store
from esault.sinks import Collect, JsonLines
from esault.sources import TextFiles
from esault.testing import LocalRuntime

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl")


@pytest.fixture
def behind_tls(server, tmp_path):
    """The store of these tests behind a TLS of its own: `behind_tls(days)` returns its URL and its certificate."""
    doors = []

    def open_door(days=2):
        folder = tmp_path / f"of-{days}"
        folder.mkdir()
        files = certificate_of(folder, days)
        doors.append(Proxy(server.port, files))
        doors[-1].open()
        return f"https://localhost:{doors[-1].port}", files[0]

    yield open_door
    for door in doors:
        door.shut()


def refusal(bucket, url):
    """What a source and a sink say before anything starts, where both say the same."""
    said = set()
    for each in (TextFiles, JsonLines):
        with pytest.raises(EsaultError) as caught:
            each(f"s3://{bucket}/in", storage_options={"endpoint_url": url}).check()
        said.add(str(caught.value).rpartition("; ")[2])
    (one,) = said
    return one


def test_a_certificate_that_is_not_trusted_is_said_and_one_that_is_named_is(server, bucket, behind_tls, monkeypatch):
    url, certificate = behind_tls()
    server.put(bucket, "in/a", "one\ntwo\n")
    not_trusted = "its certificate is not trusted: name its authority's file by AWS_CA_BUNDLE in the environment"
    assert refusal(bucket, url).startswith(not_trusted)
    monkeypatch.setenv("AWS_CA_BUNDLE", certificate)
    monkeypatch.setattr(store, "_stores", {})  # a client that was made knows its authorities
    t = Topology("by-tls")
    t.spout("rows", TextFiles(f"s3://{bucket}/in", storage_options={"endpoint_url": url})).sink("out", Collect())
    local = LocalRuntime(t)
    local.run_until_drained()
    assert [row.value for row in local.landed("out")] == ["one", "two"]
    monkeypatch.setenv("AWS_CA_BUNDLE", "/none.pem")
    monkeypatch.setattr(store, "_stores", {})
    assert refusal(bucket, url).startswith("correct the file of authorities: AWS_CA_BUNDLE")


def test_a_certificate_that_has_expired_is_said(bucket, behind_tls, monkeypatch):
    url, certificate = behind_tls(-1)
    monkeypatch.setenv("AWS_CA_BUNDLE", certificate)
    assert refusal(bucket, url) == "its certificate has expired: have a new one put there"


def test_tls_where_there_is_none_is_said_and_not_waited_for(server, bucket):
    url = server.url.replace("http:", "https:")
    assert refusal(bucket, url).startswith("it does not speak TLS there: correct the port, or write http://")


def test_in_a_run_it_is_not_waited_for(server, bucket, behind_tls, monkeypatch):
    told = []
    monkeypatch.setattr(store, "_logger", SimpleNamespace(warning=lambda text, *of: told.append(text % of)))
    url, _ = behind_tls()
    there = store.ObjectStore(SourceError, "s3", {"endpoint_url": url})
    with pytest.raises(SourceError, match="its certificate is not trusted"):
        there.read(f"s3://{bucket}/in/a")
    assert not told
