"""When a server asks to be asked again."""

from __future__ import annotations

import time
from email.utils import formatdate

import pytest

from esault.connectors.http import retries
from esault.connectors.http.retries import retry_after


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("0", 0.0),
        ("120", 120.0),
        (" 1.5 ", 1.5),
        ("-3", 0.0),
        ("soon", None),
        ("", None),
        ("Mon, 99 Foo 2026 00:00:00 GMT", None),
        # would be waited for without end
        ("inf", None),
        ("1e999", None),
        ("nan", None),
    ],
)
def test_seconds_and_what_is_none(header, seconds):
    assert retry_after(header) == seconds


@pytest.mark.parametrize(("ahead", "seconds"), [(30, 30.0), (0, 0.0), (-30, 0.0)])
def test_a_date_is_so_many_seconds_ahead_or_past(monkeypatch, ahead, seconds):
    now = 1_700_000_000.0
    monkeypatch.setattr(time, "time", lambda: now)
    assert retries.retry_after(formatdate(now + ahead, usegmt=True)) == seconds
