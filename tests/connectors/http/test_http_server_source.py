"""The source that takes POSTs, asked by real clients over real sockets."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import sys
import threading
import time

import pytest
from ports import free_port

pytest.importorskip("aiohttp", reason="aiohttp is not installed: pip install 'esault[http]'")

from http_receiver import certificate_of

from esault import Topology
from esault.connectors.http.server_source import HttpServerSource
from esault.errors import SourceError, TopologyError
from esault.sinks import Collect
from esault.testing import LocalRuntime
from esault.topology.context import Context
from esault.topology.spout import EndOfStream

pytestmark = pytest.mark.slow


@contextlib.contextmanager
def opened(**options):
    spout = HttpServerSource(port=0, **options)
    spout.check()
    spout.open(Context("posts"))
    try:
        yield spout
    finally:
        spout.close()


def post(spout, body, path="/", method="POST", **headers):
    """Return the status, the answer and its headers."""
    connection = http.client.HTTPConnection(*spout.address, timeout=20)
    try:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        data = body if isinstance(body, (bytes, str)) else json.dumps(body)
        connection.request(method, path, data, sent)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read()), answer.headers
    finally:
        connection.close()


class InThread(threading.Thread):
    """A request whose answer comes later."""

    def __init__(self, *of, **named):
        super().__init__(daemon=True)
        self._asked, self.answer = (of, named), None
        self.start()

    def run(self):
        self.answer = post(*self._asked[0], **self._asked[1])

    def answered(self):
        self.join(20)
        return self.answer


def until(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


class TestHttpServerSource:
    def test_an_object_is_a_row_and_a_list_has_many(self):
        with opened(key="id") as spout:
            assert post(spout, {"id": 1})[0] == 202
            assert post(spout, [{"id": 2}, {"id": 3}])[0] == 202
            lines = '{"id": 4}\n\n{"id": 5}\n'
            assert post(spout, lines, Content_Type="application/x-ndjson")[0] == 202
            assert spout.lag() == 5
            assert spout.read(2) == [(1, {"id": 1}), (2, {"id": 2})]
            assert [key for key, _ in spout.read(10)] == [3, 4, 5]
            assert spout.read(10) == []

    def test_lines_are_text_and_a_function_makes_its_own_rows(self):
        with opened(format="lines") as spout:
            post(spout, "a\nb\n")
            assert spout.read(9) == [(None, "a"), (None, "b")]
        with opened(format=lambda body: [len(body)], key=str) as spout:
            post(spout, b"abc")
            assert spout.read(9) == [("3", 3)]

    @pytest.mark.parametrize(
        ("body", "headers", "says"),
        [
            (b"{oops", {}, "the body is no JSON"),
            (b'{"id": 1}\n{oops', {"Content_Type": "application/jsonl"}, "line 2 is no JSON"),
            ([{"id": 1}, {"no": 2}], {}, "row 1 has no key 'id'"),
            (b"\xff", {}, "the body is no JSON"),
            ([{"id": 1}, {"id": 1.5}], {}, "row 1: the key would be 1.5, of type float"),
        ],
    )
    def test_of_a_body_with_a_bad_row_none_is_taken_and_it_is_named(self, body, headers, says):
        with opened(key="id") as spout:
            status, answer, _ = post(spout, body, **headers)
            assert status == 400
            assert says in answer["error"]
            assert spout.read(10) == []

    def test_other_paths_methods_and_tokens_are_refused(self):
        with opened(path="/rows", token="secret") as spout:
            right = {"Authorization": "Bearer secret"}
            assert post(spout, [1], "/rows")[0] == 401
            assert post(spout, [1], "/rows", Authorization="Bearer other")[0] == 401
            assert post(spout, [1], "/", **right)[0] == 404
            assert post(spout, "", "/rows", "GET", **right)[0] == 405
            assert spout.read(9) == []
            assert post(spout, [1], "/rows", **right)[0] == 202
            assert spout.read(9) == [(None, 1)]

    def test_a_page_in_a_browser_gives_no_rows(self):
        with opened() as spout:
            assert post(spout, [1], Origin="http://elsewhere.example")[0] == 403
            assert spout.read(9) == []
        with opened(token="secret") as spout:  # it has been given the token
            assert post(spout, [1], Origin="http://here.example", Authorization="Bearer secret")[0] == 202

    def test_a_body_that_is_too_large_is_refused_however_it_is_sent(self):
        with opened(max_body=100) as spout:
            assert post(spout, "x" * 101)[0] == 413
            with socket.create_connection(spout.address) as client:
                client.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
                for _ in range(3):
                    client.sendall(b"32\r\n" + b"x" * 50 + b"\r\n")
                client.sendall(b"0\r\n\r\n")
                assert b" 413 " in client.recv(1000)
            assert spout.read(9) == []

    def test_a_full_one_says_when_to_come_again_and_takes_rows_once_there_is_room(self):
        with opened(max_waiting=3) as spout:
            assert post(spout, [1, 2])[0] == 202
            assert post(spout, [3, 4])[0] == 202  # a post is taken whole
            status, _, headers = post(spout, [5])
            assert (status, headers["Retry-After"]) == (503, "1")
            assert len(spout.read(3)) == 3
            assert post(spout, [5])[0] == 202
            assert [value for _, value in spout.read(9)] == [4, 5]

    def test_a_durable_answer_comes_when_all_its_rows_are_durable(self):
        with opened(answer="durable") as spout:
            first, second = InThread(spout, [1, 2]), None
            until(lambda: spout.lag() == 2)
            second = InThread(spout, [3])
            until(lambda: spout.lag() == 3)
            spout.read(1)
            half = spout.position()
            spout.read(1)
            whole = spout.position()
            spout.read(1)
            spout.commit(half)
            assert first.is_alive()
            spout.commit(whole)
            assert first.answered()[:2] == (200, {"durable": True})
            assert second.is_alive()
            spout.commit(["another", 99])  # of an earlier process
            assert second.is_alive()
            spout.commit(spout.position())
            assert second.answered()[0] == 200

    def test_a_client_may_ask_to_wait(self):
        with opened() as spout:
            asked = InThread(spout, [1], Prefer="wait")
            until(lambda: spout.read(9))
            spout.commit(spout.position())
            assert asked.answered()[0] == 200

    def test_who_waits_when_it_closes_is_told_to_come_again(self):
        with opened(answer="durable") as spout:
            asked = InThread(spout, [1])
            until(lambda: spout.read(9))
        status, answer, headers = asked.answered()
        assert (status, headers["Retry-After"]) == (503, "1")
        assert "send it again" in answer["error"]

    def test_what_comes_again_with_its_key_is_taken_once(self):
        with opened() as spout:
            for _ in range(3):
                assert post(spout, [1, 2], Idempotency_Key="a")[0] == 202
            assert post(spout, [3], Idempotency_Key="a")[0] == 422
            assert spout.read(9) == [(None, 1), (None, 2)]
            assert spout.row_ids() == ["a/0", "a/1"]

    def test_a_key_that_is_no_text_is_refused(self):
        """Rows are named by it, and what has no UTF-8 would end the run in a sink: any client could do that."""
        with opened() as spout, socket.create_connection(spout.address) as client:
            head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 3\r\n"
            for key, status in ((b"a\xffb", b"400"), ("ä".encode(), b"202")):
                client.sendall(head + b"Idempotency-Key: " + key + b"\r\n\r\n[1]")
                assert client.recv(4096).split()[1] == status
            assert spout.read(9) == [(None, 1)]
            assert spout.row_ids() == ["ä/0"]

    def test_a_stop_refuses_what_comes_then_and_gives_what_was_taken(self):
        with opened() as spout:
            post(spout, [1])
            spout.halt()
            assert post(spout, [2])[0] == 503
            assert spout.read(9) == [(None, 1)]
            with pytest.raises(EndOfStream):
                spout.read(9)

    def test_idle_strangers_lock_no_one_out(self):
        with opened(max_connections=4) as spout, contextlib.ExitStack() as strangers:
            for _ in range(20):
                client = strangers.enter_context(socket.create_connection(spout.address))
                client.sendall(b"POST / HT")
            assert post(spout, [1])[0] == 202

    def test_rows_go_over_tls(self, tmp_path):
        certificate, key = certificate_of(tmp_path)
        with opened(certificate=certificate, private_key=key) as spout:
            trusted = ssl.create_default_context(cafile=certificate)
            trusted.check_hostname = False
            connection = http.client.HTTPSConnection("127.0.0.1", spout.address[1], timeout=20, context=trusted)
            connection.request("POST", "/", "[1]")
            assert connection.getresponse().status == 202
            connection.close()
            assert spout.read(9) == [(None, 1)]

    def test_what_cannot_be_served_is_said_before_anything_starts(self, tmp_path, monkeypatch):
        with (
            socket.create_server(("127.0.0.1", 0)) as taken,
            pytest.raises(SourceError, match="another process listens there"),
        ):
            HttpServerSource(port=taken.getsockname()[1]).check()
        with pytest.raises(SourceError, match="the host is not known"):
            HttpServerSource("no.such.host.invalid").check()
        with pytest.raises(SourceError, match="cannot be used"):
            HttpServerSource(port=0, certificate=str(tmp_path / "none.pem")).check()
        monkeypatch.setitem(sys.modules, "aiohttp", None)
        with pytest.raises(SourceError, match=r"esault\[http\]"):
            HttpServerSource(port=0).check()

    @pytest.mark.parametrize(
        "wrong",
        [
            {"host": ""},
            {"port": 70000},
            {"path": "rows"},
            {"format": "xml"},
            {"key": 5},
            {"answer": "later"},
            {"token": ""},
            {"private_key": "key.pem"},
            {"max_waiting": 0},
        ],
    )
    def test_options_that_make_no_sense_are_refused(self, wrong):
        with pytest.raises(TopologyError, match="HttpServerSource"):
            HttpServerSource(**wrong)

    def test_a_port_that_stands_in_place_of_the_host_is_told_how_to_be_written(self):
        with pytest.raises(TopologyError, match="a port is port=8080"):
            HttpServerSource(8080)

    def test_in_a_topology_an_answer_waits_for_the_sink(self):
        source = HttpServerSource(port=free_port(), answer="durable")
        t = Topology("posts")
        t.spout("posts", source).map(lambda value: value + 1).sink("out", Collect())
        local = LocalRuntime(t)
        local.run_for(0.1)
        asked = InThread(source, [1, 2])
        while asked.is_alive():
            local.run_for(0.1)
        assert asked.answered()[0] == 200
        assert [row.value for row in local.landed("out")] == [2, 3]
