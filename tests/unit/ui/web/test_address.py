"""Where a page listens."""

from __future__ import annotations

import pytest

from esault.errors import UsageError
from esault.ui.web.address import parse


@pytest.mark.parametrize(
    ("text", "host", "port"), [("8080", "127.0.0.1", 8080), ("127.0.0.1:0", "127.0.0.1", 0), ("[::1]:80", "::1", 80)]
)
def test_a_port_is_of_this_machine_alone_unless_an_address_is_said(text, host, port):
    found = parse("--ui", text)
    assert (found.host, found.port, found.beyond, found.token) == (host, port, False, "")


def test_who_may_change_a_run_has_a_token_of_that_run():
    assert len({parse("--ui", "0", control=True).token for _ in range(20)}) == 20


@pytest.mark.parametrize("text", ["", "http", "localhost:x", "70000", "-1", "example.org:80"])
def test_what_is_no_address_is_refused_with_an_example(text):
    with pytest.raises(UsageError, match="127.0.0.1:8080"):
        parse("--ui", text)


def test_beyond_this_machine_a_certificate_is_asked_for():
    with pytest.raises(UsageError, match="--ui-tls CERTIFICATE KEY"):
        parse("--ui", "0.0.0.0:8080")
    with pytest.raises(UsageError, match="No such file"):
        parse("--ui", "0.0.0.0:8080", tls=("/nowhere/cert", "/nowhere/key"))
