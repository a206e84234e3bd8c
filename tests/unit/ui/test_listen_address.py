"""The address that a server listens on."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.errors import UsageError
from esault.ui.listen_address import LOOPBACK, is_loopback, listen_address


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("8080", (LOOPBACK, 8080)),
        ("0", (LOOPBACK, 0)),
        ("0.0.0.0:80", ("0.0.0.0", 80)),
        ("[::1]:80", ("::1", 80)),
        ("::1:80", ("::1", 80)),
    ],
)
def test_a_port_alone_is_on_the_loopback(text, found):
    assert listen_address("--ui", text) == found


@pytest.mark.parametrize(
    "text", ["", ":", ":80", "x", "-1", "65536", "localhost:80", "1.2.3:80", "1.2.3.4:", "²", "::1", "9" * 5000]
)
def test_what_is_none_is_refused_by_the_name_of_the_option(text):
    with pytest.raises(UsageError, match="--ui"):
        listen_address("--ui", text)


@given(st.text(alphabet="0123456789.:[]-abcdef%", max_size=20))
def test_any_text_is_an_address_or_a_usage_error(text):
    try:
        host, port = listen_address("--ui", text)
    except UsageError:
        return
    ipaddress.ip_address(host)
    assert 0 <= port <= 65535


def test_the_loopback_is_told_from_all_addresses():
    assert is_loopback("127.0.0.1") and is_loopback("::1")
    assert not is_loopback("0.0.0.0") and not is_loopback("::")
