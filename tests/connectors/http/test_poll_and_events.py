"""The sources that ask a web service, and that listen to its events, over real sockets."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time

import pytest
import waiting
from ports import free_port

pytest.importorskip("aiohttp", reason="aiohttp is not installed: pip install 'esault[http]'")

from http_feed import Feed, feeding
from hypothesis import given
from hypothesis import strategies as st

from esault.connectors.http.poll_source import HttpPollSource
from esault.connectors.http.sse_source import EventParser, SseSource
from esault.errors import SourceError, TopologyError
from esault.testing.contract import check_spout
from esault.topology.context import Context
from esault.topology.spout import EndOfStream

pytestmark = pytest.mark.slow
EVENTS = {"Content-Type": "text/event-stream"}


@contextlib.contextmanager
def opened(spout, position=None):
    spout.check()
    spout.open(Context("feed"))
    if position is not None:
        spout.commit(position)
    try:
        yield spout
    finally:
        spout.close()


def read(spout, count, limit=1000):
    """Read so many rows, each portion up to `limit`; fewer where the stream ends."""
    rows, end = [], time.monotonic() + 20
    while len(rows) < count:
        assert time.monotonic() < end, f"{len(rows)} of {count} rows: {rows}"
        try:
            more = spout.read(min(limit, count - len(rows)))
        except EndOfStream:
            return rows
        rows += more
        if not more:
            time.sleep(0.005)
    return rows


def values(rows):
    return [value for _, value in rows]


class Orders:
    """A service that lists orders, from a time on where it is asked so, a page of `most` at a time."""

    def __init__(self, count, most=1000):
        self.rows = [{"id": n, "at": n // 3} for n in range(count)]
        self.most = most

    def __call__(self, asked):
        rows = [row for row in self.rows if row["at"] >= int(asked.get("from", 0))][: self.most]
        tag = f'"{rows}"'[:60].replace(" ", "") + str(len(rows))
        if asked.get("If-None-Match") == tag:
            return 304, b"", {}
        return 200, {"data": {"items": rows}}, {"ETag": tag}


class TestHttpPollSource:
    def test_rows_are_found_at_their_path_and_have_keys(self):
        with (
            feeding(Orders(4)) as feed,
            opened(HttpPollSource(feed.url, rows="data.items", key="id", once=True)) as spout,
        ):
            assert [key for key, _ in read(spout, 99)] == [0, 1, 2, 3]

    def test_an_answer_that_has_not_changed_gives_nothing_and_is_not_sent_again(self):
        orders = Orders(3)
        with feeding(orders) as feed, opened(HttpPollSource(feed.url, rows="data.items", every=0.01)) as spout:
            assert len(read(spout, 3)) == 3
            while len(feed.asked) < 4:
                assert spout.read(9) == []
            assert feed.asked[-1]["If-None-Match"]
            orders.rows.append({"id": 9, "at": 9})
            assert values(read(spout, 4))[-1] == {"id": 9, "at": 9}

    def test_an_answer_that_was_empty_for_a_while_has_changed(self):
        orders = Orders(2)
        with feeding(orders) as feed, opened(HttpPollSource(feed.url, rows="data.items", every=0.01)) as spout:
            first = read(spout, 2)
            there, orders.rows = orders.rows, []
            asked = len(feed.asked)
            while len(feed.asked) < asked + 2:
                assert spout.read(9) == []
            orders.rows = there
            assert read(spout, 2) == first

    def test_it_has_caught_up_behind_its_first_answer(self):
        with feeding(Orders(2)) as feed, opened(HttpPollSource(feed.url, rows="data.items", every=60)) as spout:
            assert not spout.caught_up()
            assert len(read(spout, 1)) == 1 and not spout.caught_up()
            assert len(read(spout, 1)) == 1
            waiting.until(spout.caught_up)

    def test_with_since_only_what_is_new_comes(self):
        orders = Orders(10)
        with feeding(orders) as feed:
            with opened(HttpPollSource(feed.url, rows="data.items", since=("from", "at"), every=0.01)) as spout:
                assert [row["id"] for row in values(read(spout, 10))] == list(range(10))
                orders.rows += [{"id": 10, "at": 3}, {"id": 11, "at": 4}]  # one more with the time of the last
                assert [row["id"] for row in values(read(spout, 2))] == [10, 11]
            assert feed.asked[-1]["from"] in ("3", "4")

    @pytest.mark.parametrize("since", [None, ("from", "at")])
    @pytest.mark.parametrize("before", [0, 1, 4, 5, 10])
    def test_behind_any_position_the_rest_comes(self, since, before):
        with feeding(Orders(10)) as feed:
            options = {"rows": "data.items", "since": since, "once": True}
            with opened(HttpPollSource(feed.url, **options)) as spout:
                first = read(spout, before, limit=3)
                position = spout.position()
            with opened(HttpPollSource(feed.url, **options), position) as spout:
                assert [row["id"] for row in values(first + read(spout, 99, limit=2))] == list(range(10))

    def test_a_service_that_is_away_is_waited_for_and_that_is_said_once(self, caplog):
        port, began = free_port(), []

        def begin_when_it_was_missed():
            while not caplog.records:
                time.sleep(0.01)
            began.append(Feed(Orders(3), port))

        threading.Thread(target=begin_when_it_was_missed, daemon=True).start()
        with (
            caplog.at_level(logging.WARNING),
            opened(HttpPollSource(f"http://127.0.0.1:{port}/", rows="data.items", once=True)) as spout,
        ):
            assert len(read(spout, 99)) == 3
        began[0].close()
        said = [record.getMessage() for record in caplog.records]
        assert ["trying again" in text for text in said] == [True, False]

    def test_a_busy_service_is_asked_again(self):
        answers = iter([(503, b"", {"Retry-After": "0"}), (429, b"", {})])
        with (
            feeding(lambda asked: next(answers, (200, [1], {}))) as feed,
            opened(HttpPollSource(feed.url, once=True)) as spout,
        ):
            assert values(read(spout, 9)) == [1]

    @pytest.mark.parametrize(
        ("answer", "options", "says"),
        [
            ((403, b"no", {}), {}, "the server says 403 Forbidden: no; correct url, token"),
            ((200, b"<html>", {}), {}, "has no rows at ''"),
            ((200, {"a": 1}, {}), {"rows": "data"}, "has no rows at 'data'"),
            ((200, [{"a": 1}], {}), {"key": "id"}, "has no field 'id'"),
            (
                (200, [{"a": 1}, {"a": None}], {}),
                {"since": ("from", "a")},
                "values of 'a' have no order .*; correct since=",
            ),
        ],
    )
    def test_what_no_waiting_mends_ends_it_with_the_remedy(self, answer, options, says):
        with (
            feeding(lambda asked: answer) as feed,
            opened(HttpPollSource(feed.url, **options)) as spout,
            pytest.raises(SourceError, match=says),
        ):
            read(spout, 1)

    @pytest.mark.parametrize("since", [None, ("from", "n")])
    def test_it_keeps_the_contract_of_spouts(self, since):
        rows = [{"n": n // 3, "id": n} for n in range(12)]
        with feeding(lambda asked: (200, rows, {})) as feed:
            made = check_spout(lambda: HttpPollSource(feed.url, since=since, once=True), positions=4, idle=10**9)
            assert made == 12

    def test_a_key_may_be_a_function_of_the_row(self):
        rows = [{"of": {"id": 3}}, {"of": None}]
        with feeding(lambda asked: (200, rows, {})) as feed:
            with opened(HttpPollSource(feed.url, key=lambda row: (row["of"] or {}).get("id"))) as spout:
                assert [key for key, _ in read(spout, 2)] == [3, None]
            source = HttpPollSource(feed.url, key=lambda row: row["of"]["id"])
            with (
                opened(source) as spout,
                pytest.raises(SourceError, match=r"key raises TypeError: .* for .*'of': None"),
            ):
                read(spout, 2)

    def test_what_makes_no_sense_is_refused(self):
        wrong = [{"since": "at"}, {"every": 0}, {"rows": ["data", "items"]}, {"key": 7}, {"headers": [("a", "b")]}]
        for options in ({"url": "x"}, *({"url": "http://a/", **each} for each in wrong)):
            with pytest.raises(TopologyError, match="HttpPollSource"):
                HttpPollSource(**options)
        with pytest.raises(SourceError, match="the host is not known"):
            HttpPollSource("http://no.such.host.invalid/").check()


def events(begin, end):
    return [f"id: {n}\nevent: order\ndata: {n}\n\n".encode() for n in range(begin, end)]


class TestSseSource:
    def test_it_keeps_the_contract_of_spouts(self, monkeypatch):
        monkeypatch.setattr("esault.connectors.http.incoming._FIRST_BACKOFF", 0.001)

        def answer(asked):
            begin = int(asked.get("Last-Event-ID", -1)) + 1
            return (200, events(begin, min(10, begin + 6)), EVENTS) if begin < 10 else (204, b"", {})

        with feeding(answer) as feed:
            assert check_spout(lambda: SseSource(feed.url), positions=4, idle=10**9) == 10

    def test_events_are_rows_by_their_type_until_204(self):
        once = iter([(200, [b": hello\n\n", *events(0, 3), b'data: {"a":\ndata: 1}\n\n'], EVENTS)])
        with feeding(lambda asked: next(once, (204, b"", {}))) as feed, opened(SseSource(feed.url)) as spout:
            assert read(spout, 99) == [("order", 0), ("order", 1), ("order", 2), ("message", {"a": 1})]
            assert spout.position() == "2"

    def test_a_connection_that_is_cut_off_is_gone_on_with_behind_the_last_whole_event(self):
        def answer(asked):
            begin = int(asked.get("Last-Event-ID", -1)) + 1
            if begin >= 20:
                return 204, b"", {}
            cut = f"id: {begin + 3}\ndata: {begin + 3}\n".encode()  # not whole
            return 200, [*events(begin, min(20, begin + 3)), cut], EVENTS

        with feeding(answer) as feed, opened(SseSource(feed.url)) as spout:
            assert values(read(spout, 99)) == list(range(20))

    def test_a_later_process_goes_on_behind_what_was_read(self):
        def answer(asked):
            return 200, events(int(asked.get("Last-Event-ID", -1)) + 1, 10), EVENTS

        with feeding(answer) as feed:
            with opened(SseSource(feed.url)) as spout:
                first = read(spout, 4)
                position = spout.position()
            with opened(SseSource(feed.url), position) as spout:
                assert values(first + read(spout, 6)) == list(range(10))

    def test_a_stop_gives_what_has_come(self):
        with feeding(lambda asked: (200, events(0, 5), EVENTS)) as feed, opened(SseSource(feed.url)) as spout:
            read(spout, 1)
            while spout.lag() < 4:
                time.sleep(0.005)
            spout.halt()
            assert values(read(spout, 99))[:4] == [1, 2, 3, 4]

    @pytest.mark.parametrize(
        ("answer", "says"),
        [
            ((401, b"", {}), "the server says 401"),
            ((200, b"", {"Content-Type": "text/html"}), "text/html, not text/event-stream"),
            ((200, b"data: {oops\n\n", EVENTS), "is no JSON"),
        ],
    )
    def test_what_no_waiting_mends_ends_it_with_the_remedy(self, answer, says):
        with (
            feeding(lambda asked: answer) as feed,
            opened(SseSource(feed.url)) as spout,
            pytest.raises(SourceError, match=says),
        ):
            read(spout, 1)

    @pytest.mark.parametrize(("silence", "within"), [(0.05, 30.0), (300.0, 0.05)])
    def test_a_server_that_says_nothing_is_left(self, caplog, monkeypatch, silence, within):
        monkeypatch.setattr("esault.connectors.http.sse_source._ANSWER_WITHIN", within)
        with socket.create_server(("127.0.0.1", 0)) as silent, caplog.at_level(logging.WARNING):
            url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
            with opened(SseSource(url, silence=silence)) as spout:
                end = time.monotonic() + 20
                while not caplog.records and time.monotonic() < end:
                    assert spout.read(9) == []
                    time.sleep(0.005)
            assert len(caplog.records) == 1


LINES = st.lists(
    st.sampled_from(["data: a", "data:b", "event: x", "id: 7", ": c", "", "", "data", "retry: 20", "é: ü"]), max_size=20
)


class TestEventParser:
    @given(LINES, st.sampled_from(["\n", "\r\n", "\r"]), st.lists(st.integers(1, 5), min_size=1, max_size=9))
    def test_events_are_the_same_however_the_bytes_come(self, lines, end, sizes):
        data = ("\ufeff" + end.join([*lines, "", ""])).encode()
        whole = EventParser("")
        expected = list(whole.feed(data + b"\n: end\n"))
        parser, found, at, turn = EventParser(""), [], 0, 0
        data += b"\n: end\n"
        while at < len(data):
            size = sizes[turn % len(sizes)]
            found += parser.feed(data[at : at + size])
            at, turn = at + size, turn + 1
        assert found == expected
        assert (parser.last_id, parser.retry) == (whole.last_id, whole.retry)
