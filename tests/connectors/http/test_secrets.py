"""What is said of a web service has no password and no token: it is in logs and errors, which others read."""

from __future__ import annotations

import pytest

from esault import TopologyError
from esault.sinks import WebhookSink
from esault.sources import HttpPollSource, SseSource, WebSocketSource

URL = "http://bob:secret@localhost:1/rows?token=secret"


@pytest.mark.parametrize("connector", [HttpPollSource, SseSource, WebhookSink])
def test_a_service_is_named_without_what_may_be_secret(connector):
    assert connector(URL)._service.who == f"{connector.__name__} http://localhost:1/rows"
    with pytest.raises(TopologyError, match="url=x://localhost: write") as error:
        connector("x://bob:secret@localhost?token=secret")
    assert "secret" not in str(error.value)


def test_so_is_one_of_sockets():
    assert WebSocketSource(URL.replace("http", "ws", 1))._service.who == "WebSocketSource ws://localhost:1/rows"
