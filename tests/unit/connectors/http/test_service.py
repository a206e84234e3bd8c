"""A web service: its address and what it is told."""

from __future__ import annotations

import pytest

from esault.connectors.http.service import Service
from esault.errors import SourceError, TopologyError


def made(url, headers=None, token=None, example="https://example.org/events"):
    return Service("SseSource", url, example, headers, token)


@pytest.mark.parametrize(
    "url", ["http://h", "https://h:8080/a?b=c", "HTTP://h", "http://[::1]:80/", "http://ü.example/"]
)
def test_addresses_with_and_without_tls_are_taken(url):
    shown = url.partition("?")[0]  # what stands behind it may be secret
    assert made(url).url == url and made(url).who == f"SseSource {shown}"


@pytest.mark.parametrize("url", ["ws://h", "wss://h/a"])
def test_the_example_says_which_scheme(url):
    assert made(url, example="wss://example.org").url == url
    with pytest.raises(TopologyError):
        made(url)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "h",
        "h:80",
        "ftp://h",
        "http://",
        "http:///a",
        "http://:80",
        "//h",
        None,
        7,
        b"http://h",
        "http://[::1",
        "http://[x]/",
    ],
)
def test_others_are_refused_with_an_example(url):
    with pytest.raises(TopologyError, match=r'SseSource: url=.*write one such as "https://example.org/events"'):
        made(url)


@pytest.mark.parametrize("headers", ["a", [("a", "b")], 7])
def test_headers_are_a_dict(headers):
    with pytest.raises(TopologyError, match="headers="):
        made("http://h", headers)


def test_a_token_is_a_header_and_the_given_ones_stay():
    given = {"X": "y", "Authorization": "old"}
    assert made("http://h", given, "t").headers == {"X": "y", "Authorization": "Bearer t"}
    assert given == {"X": "y", "Authorization": "old"} and made("http://h").headers == {}


def test_a_host_that_has_no_address_is_said():
    made("http://127.0.0.1:1").check(SourceError)
    with pytest.raises(SourceError, match="the host is not known"):
        made(f"http://{'a' * 64}.invalid").check(SourceError)
