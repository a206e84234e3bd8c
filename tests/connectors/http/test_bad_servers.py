"""Services that speak no TLS where it is asked for, or show a certificate that is not trusted."""

from __future__ import annotations

import shutil
import time

import pytest

pytest.importorskip("aiohttp", reason="aiohttp is not installed: pip install 'esault[http]'")

from http_receiver import certificate_of, receiving

from esault.connectors.http.poll_source import HttpPollSource
from esault.connectors.http.sse_source import SseSource
from esault.connectors.http.web_socket_source import WebSocketSource
from esault.errors import SourceError
from esault.topology.context import Context

pytestmark = pytest.mark.slow


def refusal(source):
    source.check()
    source.open(Context("feed"))
    try:
        with pytest.raises(SourceError, match="TLS is refused") as raised:
            end = time.monotonic() + 20
            while time.monotonic() < end:
                source.read(1)
                time.sleep(0.002)
        return str(raised.value)
    finally:
        source.close()


def sources(port):
    https = f"https://localhost:{port}/"
    return HttpPollSource(https), SseSource(https), WebSocketSource(https.replace("https", "wss"))


def test_a_service_without_tls_is_not_waited_for():
    with receiving() as service:
        for source in sources(service.port):
            assert "it does not speak TLS there: correct the port, or write http:// or ws://" in refusal(source)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl")
def test_a_certificate_that_is_not_trusted_is_said(tmp_path):
    with receiving(files=certificate_of(tmp_path)) as service:
        for source in sources(service.port):
            assert "is not trusted: name its authority's file by SSL_CERT_FILE" in refusal(source)
