"""Rows that are pushed to clients, over real sockets: what they get, what they are told of what is lost, and who is refused."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import uuid

import pytest
from ports import free_port

pytest.importorskip("aiohttp", reason="aiohttp is not installed: pip install 'esault[http]'")

import aiohttp

from esault import SinkError, TopologyError
from esault.connectors.http import push_server
from esault.connectors.http.sse_source import EventParser
from esault.sinks import SseSink, WebSocketSink
from esault.topology.context import Context
from esault.topology.sink import Row, RunInfo

pytestmark = pytest.mark.slow


class Pushing:
    """A sink as the engine has it: one object in the driver, one in a sub-unit."""

    def __init__(self, cls, **options):
        run, self.port = uuid.uuid4().hex, free_port()  # no other process of tests has a run of this name
        self.driver, self.sub_unit = (cls(self.port, **options) for _ in range(2))
        self.driver.check()
        self.driver.begin(RunInfo(run, "pushes", "out"))
        self.sub_unit.open(Context("out", run=run))
        self.url = f"http://127.0.0.1:{self.port}/"

    def write(self, *values):
        self.sub_unit.write([Row(f"k{value}", value, 0.0) for value in values])

    def end(self):
        self.sub_unit.close()
        self.driver.end(True)


@contextlib.contextmanager
def pushing(cls, **options):
    made = Pushing(cls, **options)
    try:
        yield made
    finally:
        made.end()


async def events(session, url, until, **options):
    """Yield server-sent events until one of them is `until`; None, once connected, first."""
    async with session.get(url, **options) as answer:
        assert answer.status == 200, await answer.text()
        parser = EventParser("")
        yield None
        async for chunk in answer.content.iter_any():
            for event in parser.feed(chunk):
                yield event
                if until(event):
                    return


async def heard(pushed, *values, until=None, **options):
    """Write values once a client is there, and return the events that it gets."""
    last = values[-1] if until is None else None
    found = []
    async with aiohttp.ClientSession() as session:
        over = until or (lambda event: event.kind == "message" and json.loads(event.data)["value"] == last)
        async for event in events(session, pushed.url, over, **options):
            if event is None:
                await asyncio.to_thread(pushed.write, *values)
            else:
                found.append(event)
    return found


def values_of(found):
    return [json.loads(event.data)["value"] for event in found if event.kind == "message"]


class TestSseSink:
    def test_who_listens_gets_each_row_with_an_id(self):
        with pushing(SseSink) as pushed:
            found = asyncio.run(heard(pushed, 1, 2, 3))
            assert [json.loads(event.data) for event in found] == [{"key": f"k{n}", "value": n} for n in (1, 2, 3)]
            assert len({event.id for event in found}) == 3

    def test_a_client_goes_on_behind_its_last_event_id(self):
        with pushing(SseSink) as pushed:
            found = asyncio.run(heard(pushed, *range(10)))
            again = asyncio.run(heard(pushed, 10, headers={"Last-Event-ID": found[3].id}))
            assert values_of(again) == [4, 5, 6, 7, 8, 9, 10]
            assert {event.kind for event in again} == {"message"}

    def test_rows_that_have_left_the_buffer_are_counted(self):
        with pushing(SseSink, buffer=5) as pushed:
            found = asyncio.run(heard(pushed, 0, 1))
            asyncio.run(heard(pushed, *range(2, 12)))
            again = asyncio.run(heard(pushed, 12, headers={"Last-Event-ID": found[-1].id}))
            assert [(event.kind, event.data) for event in again[:1]] == [("lost", '{"rows": 5}')]
            assert values_of(again) == [7, 8, 9, 10, 11, 12]

    def test_an_id_of_an_earlier_run_is_known_as_that(self):
        with pushing(SseSink) as before:
            found = asyncio.run(heard(before, 1))
        with pushing(SseSink) as pushed:
            asyncio.run(heard(pushed, 2))
            again = asyncio.run(heard(pushed, 3, headers={"Last-Event-ID": found[0].id}))
            assert again[0][:2] == ("lost", '{"rows": null}') and values_of(again) == [2, 3]

    def test_a_client_without_an_id_begins_where_it_is_said(self):
        with pushing(SseSink, start="earliest", event=lambda key, value: key, body=lambda key, value: "a\nb") as pushed:
            asyncio.run(heard(pushed, 1, until=lambda event: True))
            found = asyncio.run(heard(pushed, 2, until=lambda event: event.kind == "k2"))
            assert [(event.kind, event.data) for event in found] == [("k1", "a\nb"), ("k2", "a\nb")]

    def test_at_the_end_clients_have_the_last_rows_and_are_told(self):
        pushed = Pushing(SseSink)

        async def listen():
            found = []
            async with aiohttp.ClientSession() as session:
                async for event in events(session, pushed.url, lambda event: event.kind == "end"):
                    if event is None:
                        await asyncio.to_thread(pushed.write, *range(2000))
                        await asyncio.to_thread(pushed.end)
                    else:
                        found.append(event)
            return found

        found = asyncio.run(listen())
        assert values_of(found) == list(range(2000)) and found[-1].kind == "end"

    def test_a_slow_client_is_dropped_and_nothing_waits_for_it(self, monkeypatch, caplog):
        monkeypatch.setattr(push_server, "SLOW", 0.5)
        with pushing(SseSink, buffer=100, body=lambda key, value: {"n": value, "filler": "x" * 200_000}) as pushed:

            async def both():
                with socket.create_connection(("127.0.0.1", pushed.port)) as slow:
                    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                    slow.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{pushed.port}\r\n\r\n".encode())
                    assert slow.recv(12) == b"HTTP/1.1 200"
                    async with aiohttp.ClientSession() as session:
                        number, seen = 0, []
                        async for event in events(session, pushed.url, lambda event: "too slow" in caplog.text):
                            if event is not None:
                                seen.append(json.loads(event.data)["n"])
                            pushed.write(number)  # one for each that the quick one has got
                            number += 1
                    return seen

            seen = asyncio.run(both())
            assert seen == list(range(len(seen)))

    def test_pages_of_other_origins_and_names_are_refused(self):
        with pushing(SseSink, origins=["https://example.org"], max_clients=1) as pushed:

            async def status(**headers):
                async with aiohttp.ClientSession() as session, session.get(pushed.url, headers=headers) as answer:
                    return answer.status, answer.headers.get("Access-Control-Allow-Origin")

            assert asyncio.run(status(Origin="https://example.com"))[0] == 403
            assert asyncio.run(status(Host="evil.example"))[0] == 403
            assert asyncio.run(status(Origin="https://example.org")) == (200, "https://example.org")

    def test_a_token_is_asked_for(self):
        with pushing(SseSink, token="secret", path="/rows") as pushed:

            async def status(path, method="GET", **headers):
                async with (
                    aiohttp.ClientSession() as session,
                    session.request(method, pushed.url + path, headers=headers) as answer,
                ):
                    return answer.status

            assert asyncio.run(status("rows")) == 401
            assert asyncio.run(status("rows", Authorization="Bearer wrong")) == 401
            assert asyncio.run(status("rows", Authorization="Bearer secret")) == 200
            assert asyncio.run(status("rows?token=secret")) == 200
            assert asyncio.run(status("other?token=secret")) == 404
            assert asyncio.run(status("rows?token=secret", "POST")) == 405


class TestWebSocketSink:
    def test_who_is_connected_gets_each_row_and_goes_on_behind_an_id(self):
        with pushing(WebSocketSink, buffer=5) as pushed:

            async def messages(count, *values, **params):
                async with aiohttp.ClientSession() as session, session.ws_connect(pushed.url, params=params) as there:
                    await asyncio.to_thread(pushed.write, *values)
                    return [json.loads((await there.receive()).data) for _ in range(count)]

            first = asyncio.run(messages(3, 1, 2, 3))
            assert [message["data"] for message in first] == [{"key": f"k{n}", "value": n} for n in (1, 2, 3)]
            again = asyncio.run(messages(3, 4, last_id=first[0]["id"]))
            assert [message["data"]["value"] for message in again] == [2, 3, 4]
            asyncio.run(messages(1, 5, 6, 7, 8, 9))
            lost, *rows = asyncio.run(messages(6, last_id=first[2]["id"]))
            assert lost == {"lost": 1} and [message["data"]["value"] for message in rows] == [5, 6, 7, 8, 9]

    def test_at_the_end_the_connection_is_closed_and_says_why(self):
        pushed = Pushing(WebSocketSink)

        async def listen():
            async with aiohttp.ClientSession() as session, session.ws_connect(pushed.url) as there:
                await there.send_str("of no interest")
                await asyncio.to_thread(pushed.write, 1)
                await asyncio.to_thread(pushed.end)
                assert json.loads((await there.receive()).data)["data"]["value"] == 1
                end = await there.receive()
                return end.type, end.data

        assert asyncio.run(listen()) == (aiohttp.WSMsgType.CLOSE, 1001)

    def test_a_page_of_another_origin_is_refused(self):
        with pushing(WebSocketSink) as pushed:

            async def connect():
                async with aiohttp.ClientSession() as session:
                    await session.ws_connect(pushed.url, headers={"Origin": "https://example.com"})

            with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
                asyncio.run(connect())


def test_a_port_that_is_taken_is_said_before_the_run():
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(SinkError, match="another process listens there"),
    ):
        SseSink(taken.getsockname()[1]).check()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"port": 0}, "a number from 1 to 65535"),
        ({"path": "x"}, 'begins with "/"'),
        ({"body": 5}, "a function of key and value"),
        ({"buffer": 0}, "at least 1"),
        ({"start": "now"}, '"latest" or "earliest"'),
        ({"origins": "https://example.org"}, "write a list"),
        ({"private_key": "x"}, "without certificate"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, said):
    with pytest.raises(TopologyError, match=said):
        SseSink(**{"port": 8080, **options})
