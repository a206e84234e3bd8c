"""The source that listens to a WebSocket, against a real server."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

import pytest

pytest.importorskip("aiohttp", reason="aiohttp is not installed: pip install 'esault[http]'")

from web_socket_feed import serving

from esault.connectors.http.web_socket_source import WebSocketSource
from esault.errors import SourceError, TopologyError
from esault.topology.context import Context
from esault.topology.spout import EndOfStream

pytestmark = pytest.mark.slow


@contextlib.contextmanager
def opened(spout):
    spout.check()
    spout.open(Context("feed"))
    try:
        yield spout
    finally:
        spout.close()


def read(spout, count):
    rows, end = [], time.monotonic() + 20
    while len(rows) < count:
        assert time.monotonic() < end, rows
        try:
            rows += spout.read(count - len(rows))
        except EndOfStream:
            return rows
        time.sleep(0.002)
    return rows


class TestWebSocketSource:
    def test_messages_are_rows_behind_what_it_sends_first(self):
        async def talk(connection):
            asked = await connection.receive_json()
            await connection.send_json({"to": asked["subscribe"]})
            await connection.send_bytes(b"\x00")

        with serving(talk) as url, opened(WebSocketSource(url, send=[{"subscribe": "a"}], reconnect=False)) as spout:
            assert read(spout, 9) == [(None, {"to": "a"}), (None, b"\x00")]

    def test_it_connects_again_where_the_connection_ends(self):
        count = iter(range(99))

        async def talk(connection):
            await connection.send_str(str(next(count)))

        with serving(talk) as url, opened(WebSocketSource(url, format="text")) as spout:
            assert [value for _, value in read(spout, 3)] == ["0", "1", "2"]

    def test_a_server_that_takes_a_connection_and_says_nothing_is_left_and_asked_again(self, monkeypatch):
        """Such as one that was stopped, or has died behind what forwards its port: the connection stands, and no answer comes."""
        monkeypatch.setattr("esault.connectors.http.web_socket_source._CONNECT_WITHIN", 0.3)
        asked = []
        with socket.create_server(("127.0.0.1", 0)) as silent:

            def listen():
                for _ in range(2):
                    asked.append(silent.accept()[0])

            listening = threading.Thread(target=listen, daemon=True)
            listening.start()
            with opened(WebSocketSource(f"ws://127.0.0.1:{silent.getsockname()[1]}/feed")):
                listening.join(20)
        for each in asked:
            each.close()
        assert len(asked) == 2

    def test_a_reader_that_is_slow_holds_the_server_back(self, monkeypatch):
        monkeypatch.setattr("esault.connectors.http.incoming._MOST", 10)
        sent = 0

        async def talk(connection):
            nonlocal sent
            for sent in range(2000):
                await connection.send_str('"' + "x" * 10_000 + '"')

        with serving(talk) as url, opened(WebSocketSource(url, reconnect=False)) as spout:
            before = -1
            while sent != before or not sent:
                before = sent
                time.sleep(0.3)
            assert spout.lag() == 10
            assert sent < 1999
            assert len(read(spout, 2000)) == 2000

    def test_a_stop_gives_what_has_come(self):
        async def talk(connection):
            for number in range(5):
                await connection.send_str(str(number))
            await connection.receive()

        with serving(talk) as url, opened(WebSocketSource(url)) as spout:
            while spout.lag() < 5:
                time.sleep(0.002)
            spout.halt()
            assert [value for _, value in read(spout, 9)] == [0, 1, 2, 3, 4]

    def test_a_refusal_and_what_is_no_json_end_it_with_the_remedy(self):
        async def talk(connection):
            await connection.send_str("{oops")

        with serving(talk) as url:
            with opened(WebSocketSource(url, token="wrong")) as spout, pytest.raises(SourceError, match="says 401"):
                read(spout, 1)
            with opened(WebSocketSource(url)) as spout, pytest.raises(SourceError, match="is no JSON"):
                read(spout, 1)

    def test_what_makes_no_sense_is_refused(self):
        for wrong in ({"url": "http://a/"}, {"url": "ws://a/", "format": "x"}, {"url": "ws://a/", "send": "hello"}):
            with pytest.raises(TopologyError, match="WebSocketSource"):
                WebSocketSource(**wrong)
        with pytest.raises(SourceError, match="the host is not known"):
            WebSocketSource("ws://no.such.host.invalid/").check()
