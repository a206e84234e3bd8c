"""Which view a run gets: a table on a terminal, lines elsewhere, records where the log is JSON."""

from __future__ import annotations

import logging
import sys

import pytest

from esault.runtime.process.log_output import JsonFormatter
from esault.ui.choose import choose
from esault.ui.json_view import JsonView
from esault.ui.live import LiveView
from esault.ui.plain import PlainView
from esault.ui.shielded import ShieldedView


@pytest.mark.parametrize(
    ("plain", "terminal", "formatter", "kind"),
    [
        (False, True, None, LiveView),
        (True, True, None, PlainView),
        (False, False, None, PlainView),
        (False, True, logging.Formatter(), LiveView),
        (False, True, JsonFormatter(), JsonView),
    ],
)
def test_by_the_terminal_and_the_log(plain, terminal, formatter, kind, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    log = logging.NullHandler() if formatter else None
    if log is not None:
        log.setFormatter(formatter)
    with choose(plain, log) as view:
        assert isinstance(view, ShieldedView)
        assert type(view._view) is kind


@pytest.mark.parametrize(("term", "kind"), [("dumb", PlainView), ("xterm", LiveView)])
def test_a_terminal_without_a_cursor_has_lines(term, kind, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", term)
    with choose(plain=False) as view:
        assert isinstance(view, ShieldedView)
        assert type(view._view) is kind


def test_what_stands_on_the_terminal_is_taken_away_also_where_the_run_fails(monkeypatch):
    closed = []
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr(LiveView, "close", lambda self: closed.append(self))
    with pytest.raises(KeyError), choose(False) as view:
        raise KeyError
    assert isinstance(view, ShieldedView)
    assert closed == [view._view]
