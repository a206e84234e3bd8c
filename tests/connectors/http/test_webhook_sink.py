"""The sink that POSTs rows, against a real service."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import sys
import threading

import pytest
from ports import free_port

pytest.importorskip("aiohttp", reason="aiohttp is not installed: pip install 'esault[http]'")

from http_receiver import Receiver, certificate_of, receiving

from esault.connectors.http.webhook_sink import WebhookSink
from esault.errors import SinkError, TopologyError
from esault.testing.contract import check_sink
from esault.topology.context import Context
from esault.topology.sink import Row

pytestmark = pytest.mark.slow


def rows(count, keys=3):
    return [Row(number % keys, number, 0.0, f"r{number}") for number in range(count)]


def send(url, given, **options):
    """Write rows as the engine does: the hooks are coroutines of one event loop."""

    async def sent():
        sink = WebhookSink(url, **options)
        sink.check()
        sink.context = Context("hook", lineage="state-1")
        sink.open(sink.context)
        try:
            await sink.write(given)
        finally:
            await sink.close()

    asyncio.run(sent())


class TestWebhookSink:
    def test_each_row_is_a_request_and_those_of_a_key_are_in_order(self):
        with receiving() as service:
            send(service.url, rows(30), token="secret", headers={"X-From": "esault"})
            assert sorted(got.body for got in service.got) == list(range(30))
            for key in range(3):
                of_key = [got.body for got in service.got if got.body % 3 == key]
                assert of_key == sorted(of_key)
            assert {got.headers["Authorization"] for got in service.got} == {"Bearer secret"}
            assert {got.headers["X-From"] for got in service.got} == {"esault"}

    def test_a_row_that_comes_again_has_the_same_idempotency_key_and_no_other_row_has_it(self):
        with receiving() as service:
            send(service.url, rows(10))
            send(service.url, rows(10))
            keys = {}
            for got in service.got:
                keys.setdefault(got.body, set()).add(got.key)
            assert [len(of) for of in keys.values()] == [1] * 10
            assert len({key for of in keys.values() for key in of}) == 10

    def test_batches_are_lists(self):
        with receiving() as service:
            send(service.url, rows(10, keys=1), batch=4, body=lambda key, value: {"n": value})
            assert [len(got.body) for got in service.got] == [4, 4, 2]
            assert service.got[0].body[1] == {"n": 1}

    @pytest.mark.parametrize("status", [408, 425, 429, 500, 503])
    def test_what_may_pass_is_tried_again_with_the_same_key(self, status):
        answers = iter([status, status])
        with receiving(answer=lambda got: next(answers, 200)) as service:
            send(service.url, rows(1))
            assert len(service.refused) == 2
            assert len({got.key for got in [*service.refused, *service.got]}) == 1

    def test_retry_after_is_waited_for(self, monkeypatch):
        asked, sleep = [], asyncio.sleep

        async def slept(seconds, *of):
            asked.append(seconds)
            await sleep(0)

        answers = iter([(429, {"Retry-After": "7"}), (503, {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"})])
        with receiving(answer=lambda got: next(answers, 200)) as service:
            monkeypatch.setattr("esault.connectors.http.webhook_sink.asyncio.sleep", slept)
            send(service.url, rows(1))
        assert 7 <= asked[0] <= 7.5
        assert 0 <= asked[1] <= 1

    def test_a_refusal_ends_the_run_and_is_said(self):
        with (
            receiving(answer=lambda got: 422) as service,
            pytest.raises(SinkError, match="it says 422 .*: ok; correct url, token or body, .*dead_letters="),
        ):
            send(service.url, rows(1))

    def test_refused_rows_are_kept_where_that_is_asked_for(self, tmp_path):
        path = tmp_path / "refused.jsonl"
        with receiving(answer=lambda got: 400 if got.body % 2 else 200) as service:
            send(service.url, rows(10), dead_letters=path)
            assert sorted(got.body for got in service.got) == [0, 2, 4, 6, 8]
        kept = [json.loads(line) for line in path.read_text().splitlines()]
        assert sorted((row["value"], row["status"], row["key"]) for row in kept) == [
            (number, 400, number % 3) for number in range(1, 10, 2)
        ]

    def test_a_file_for_them_that_cannot_be_is_said_before_the_run(self, tmp_path):
        for path in (tmp_path / "missing" / "refused.jsonl", tmp_path):
            with pytest.raises(SinkError, match="dead_letters=.*: no file can be made there; name one in a folder"):
                WebhookSink("http://localhost:1/hook", dead_letters=path).check()
        WebhookSink("http://localhost:1/hook", dead_letters=tmp_path / "refused.jsonl").check()
        folder = tmp_path / "goes"
        folder.mkdir()
        with (
            receiving(answer=lambda got: folder.rmdir() or 400) as service,
            pytest.raises(SinkError, match=r"goes/refused\.jsonl: cannot be written"),
        ):
            send(service.url, rows(1), dead_letters=folder / "refused.jsonl")

    def test_a_service_that_is_away_and_comes_back_is_waited_for_and_that_is_said_once(self, caplog):
        port = free_port()
        began = []
        threading.Timer(1.0, lambda: began.append(Receiver(port))).start()
        with caplog.at_level(logging.WARNING):
            send(f"http://127.0.0.1:{port}/hook", rows(20))
        began[0].close()
        assert len(began[0].got) == 20
        said = [record.getMessage() for record in caplog.records if "WebhookSink" in record.getMessage()]
        assert ["trying again" in text for text in said] == [True, False]
        assert "rows are taken again" in said[1]

    def test_when_one_request_is_taken_the_others_come_again_at_once(self, monkeypatch):
        impatient = []  # one request comes again soon, the others later than the test ends

        def drawn(low, high):
            task = asyncio.current_task()
            impatient.append(task)
            return 0.05 if task is impatient[0] else 3600.0

        monkeypatch.setattr("esault.connectors.http.webhook_sink.random.uniform", drawn)
        at_once = len({hash(repr(key)) % 64 for key in range(8)})  # keys may share a place
        refused = set()

        def answer(got):
            if len(refused) == at_once:
                return 200
            refused.add(got.body)
            return 503

        with receiving(answer=answer) as service:
            send(service.url, rows(8, keys=8), concurrency=64, retry_for=20)
            assert sorted(got.body for got in service.got) == list(range(8))
            assert {got.body for got in service.refused} == refused

    def test_one_that_is_never_taken_is_not_sent_as_often_as_others_are(self):
        with (
            receiving(answer=lambda got: 500 if got.body == 0 else 200) as service,
            pytest.raises(SinkError, match="it says 500"),
        ):
            send(service.url, rows(1) + [Row(1, number, 0.0, f"n{number}") for number in range(1, 400)], retry_for=1)
        assert len(service.refused) <= 60

    def test_after_a_set_time_it_fails_by_what_may_pass(self):
        with pytest.raises(SinkError, match="not taken within 0.2 s: .*retry_for=") as failed:
            send(f"http://127.0.0.1:{free_port()}/", rows(1), retry_for=0.2)
        assert isinstance(failed.value.__cause__, ConnectionError)

    def test_a_service_that_does_not_answer_is_given_up_in_time(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
            with pytest.raises(SinkError, match=r"no answer within 0.1 s|timeout|Timeout"):
                send(url, rows(1), timeout=0.1, retry_for=0.2)

    def test_tls_is_refused_at_once_and_taken_with_the_authority(self, tmp_path):
        files = certificate_of(tmp_path)
        with receiving(files=files) as service:
            with pytest.raises(SinkError, match="TLS is refused: .*ca="):
                send(service.url, rows(1))
            send(service.url.replace("127.0.0.1", "localhost"), rows(1), ca=files[0])
            assert len(service.got) == 1

    def test_what_cannot_be_reached_is_said_before_anything_starts(self, monkeypatch):
        with pytest.raises(SinkError, match="the host is not known"):
            WebhookSink("http://no.such.host.invalid/").check()
        with pytest.raises(SinkError, match="cannot be read"):
            WebhookSink("https://localhost/", ca="/nowhere.pem").check()
        monkeypatch.setitem(sys.modules, "aiohttp", None)
        with pytest.raises(SinkError, match=r"esault\[http\]"):
            WebhookSink("http://localhost/").check()

    @pytest.mark.parametrize(
        ("url", "wrong"),
        [
            ("example.org", {}),
            ("ftp://example.org", {}),
            ("http://a/", {"batch": 0}),
            ("http://a/", {"concurrency": 0}),
            ("http://a/", {"body": "x"}),
            ("http://a/", {"timeout": 0}),
        ],
    )
    def test_options_that_make_no_sense_are_refused(self, url, wrong):
        with pytest.raises(TopologyError, match="WebhookSink"):
            WebhookSink(url, **wrong)


def test_the_public_contract_is_kept(tmp_path):
    with receiving() as service:

        def seen(folder):
            once = {}
            for got in service.got:
                if got.body[0] == str(folder):
                    once.setdefault(got.key, (got.body[1], got.body[2]))
            return list(once.values())

        def make(folder):
            return WebhookSink(service.url, body=lambda key, value: [str(folder), key, value], concurrency=1)

        assert check_sink(make, seen) > 0
