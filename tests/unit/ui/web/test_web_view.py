"""The view of a run that has a page: what the page knows, what the other view hears, and when it listens."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from esault.control.report.timeline import Page
from esault.errors import UsageError
from esault.runtime.session import control_client
from esault.runtime.session.control_client import Running
from esault.ui.web import web_view
from esault.ui.web.address import Address
from esault.ui.web.web_view import WebView


class Other:
    """The view behind it."""

    def __init__(self):
        self.heard = []

    def __getattr__(self, name):
        if name not in ("line", "notice", "update", "log"):
            raise AttributeError(name)
        return lambda *told: self.heard.append((name, *told))


class Plain:
    """A view of lines alone."""

    line = notice = update = lambda self, *told: None


class Server:
    """Listens at once where it is asked to."""

    url = "http://127.0.0.1:8080"

    def __init__(self, option, host, port, application, tls, guarded):
        self.asked = (option, host, port, guarded)
        self.read_too = application._read_too
        self.starts, self.closed = 0, False

    def start(self, notice):
        self.starts += 1
        return self.starts == 1

    def close(self):
        self.closed = True


@pytest.fixture
def made(monkeypatch):
    monkeypatch.setattr(web_view, "LateServer", Server)

    def make(other=None, **options):
        given = {"host": "127.0.0.1", "port": 8080, "tls": None, "token": "", **options}
        return WebView(Address(**given), other or Other(), control=True)

    return make


def lines(view):
    return [what for _, what in view.history("this")._kept["line"]]


def seen(topology="words", run="r1"):
    return SimpleNamespace(topology=topology, run=run)


def test_all_is_handed_on_and_stands_on_the_page(made):
    other = Other()
    view = made(other)
    record = logging.LogRecord("mine", logging.WARNING, "here", 1, "it is %s", ("late",), None)
    vars(record).update(unit="count", sub_unit=3, run="r1")
    view.line("count/3", "hello")
    view.notice("a notice")
    view.log(record)
    assert other.heard == [("line", "count/3", "hello"), ("notice", "a notice"), ("log", record)]
    assert [each["text"] for each in lines(view)] == ["hello", "a notice", "WARNING mine: it is late"]
    assert [each["mark"] for each in lines(view)][:2] == ["count/3", ""]


def test_a_record_stands_on_the_page_where_the_other_view_shows_none(made):
    view = made(Plain())
    assert not view.log(logging.LogRecord("mine", logging.INFO, "here", 1, "it goes", (), None))
    assert len(lines(view)) == 1


def test_windows_go_on_to_a_view_that_takes_them(made):
    class Timed(Plain):
        def __init__(self):
            self.pages = []

        def page(self, page):
            self.pages.append(page)

    other = Timed()
    page = Page(7.0, ())
    made(other).page(page)
    made(Plain()).page(page)
    assert other.pages == [page]


@pytest.mark.parametrize(("token", "shown"), [("", "/"), ("secret", "/#token=secret")])
def test_it_listens_with_the_first_snapshot_and_says_where_once(made, token, shown):
    other = Other()
    view = made(other, token=token)
    assert view._server.starts == 0
    one, two = seen(), seen()
    view.update(one)
    view.update(two)
    assert other.heard == [("notice", f"web UI: http://127.0.0.1:8080{shown}"), ("update", one), ("update", two)]
    assert view.history("this")._snapshot is two
    assert list(view.list()) == [{"run": "this", "topology": "words", "control": True}]


def test_only_this_machine_looks_without_a_token(made):
    here, there = made()._server, made(host="192.0.2.1")._server
    assert (here.asked, here.read_too) == (("--ui", "127.0.0.1", 8080, True), False)
    assert (there.asked, there.read_too) == (("--ui", "192.0.2.1", 8080, False), True)


def test_a_window_is_kept_and_the_end_is_told(made):
    view = made()
    view.page(
        Page(7.0, (SimpleNamespace(unit="count", t=6.5, processed=1, p50_ms=2, p99_ms=3, sub_units=4, waiting=5),))
    )
    view.close()
    assert view._server.closed
    assert b"".join(view.history("this").events()) == (
        b'event: window\ndata: [{"t": 6.5, "units": {"count": [1, 2, 3, 4, 5]}}]\n\nevent: end\ndata: {}\n\n'
    )


def test_requests_go_to_this_process_own_run(made, monkeypatch):
    runs = [
        Running(Path(name), {"topology": "words", "run": run, "pid": pid})
        for name, run, pid in [("a", "r1", -1), ("b", "r2", os.getpid()), ("c", "r1", os.getpid())]
    ]
    monkeypatch.setattr(control_client, "running", lambda: runs)
    asked = []
    monkeypatch.setattr(control_client, "ask", lambda *told, patience: asked.append(told) or iter([{"done": True}]))
    view = made()
    view.update(seen())
    assert view.running("this") is runs[2]
    assert list(view.ask("this", {"do": "stop"})) == [{"done": True}]
    assert asked == [(Path("c"), {"do": "stop"})]
    del runs[2]
    with pytest.raises(UsageError, match="the run takes no requests now"):
        view.running("this")
