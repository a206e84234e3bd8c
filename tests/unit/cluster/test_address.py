"""HOST:PORT: what is written comes back, and what is none is a UsageError."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.cluster.address import DEFAULT_PORT, is_loopback, join, split
from esault.errors import UsageError


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("db", ("db", DEFAULT_PORT)),
        ("10.0.0.2:80", ("10.0.0.2", 80)),
        ("[::1]:80", ("::1", 80)),
        ("[::1]", ("::1", DEFAULT_PORT)),
        ("fe80::1%eth0", ("fe80::1%eth0", DEFAULT_PORT)),
        ("h:0", ("h", 0)),
        ("h:65535", ("h", 65535)),
    ],
)
def test_the_port_is_told_from_the_host(text, found):
    assert split(text) == found


@pytest.mark.parametrize(
    "text",
    ["", ":80", "h:", "h:65536", "h:-1", "h:x", "h:²", "h:1.5", "h: 80", "h:" + "9" * 5000, "[::1", "[::1]80", "[]:80"],
)
def test_what_is_no_address_is_refused(text):
    with pytest.raises(UsageError, match="is no address"):
        split(text)


@given(st.one_of(st.ip_addresses().map(str), st.sampled_from(["localhost", "a.b-c"])), st.integers(0, 65535))
def test_split_reads_what_join_wrote(host, port):
    assert split(join(host, port)) == (host, port)


@given(st.text(max_size=12))
def test_any_text_is_an_address_or_a_usage_error(text):
    try:
        host, port = split(text)
    except UsageError:
        return
    assert host and 0 <= port <= 65535


def test_only_this_machine_is_loopback():
    assert is_loopback("127.0.0.1") and is_loopback("::1") and is_loopback("127.9.9.9")
    assert not is_loopback("0.0.0.0") and not is_loopback("10.0.0.1") and not is_loopback("fe80::1")
