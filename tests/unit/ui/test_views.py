"""Snapshots as pictures and lines."""

from __future__ import annotations

import errno
import io
import signal
from dataclasses import replace

import pytest

from esault.control.report.summary import Snapshot, UnitSnapshot
from esault.ui.live import LiveView, picture
from esault.ui.plain import PlainView
from esault.ui.rates import Rates, percent, short
from esault.ui.shielded import ShieldedView


def snapshot(now, done=50.0, errors=0, phase="running"):
    return Snapshot(
        topology="words",
        phase=phase,
        draining=False,
        now=now,
        seconds=now - 100.0,
        units=(
            UnitSnapshot(
                name="lines", kind="spout", sub_units=1, tuples_out=int(1000 * (now - 100)), progress=(done, 100.0)
            ),
            UnitSnapshot(
                name="count",
                kind="bolt",
                sub_units=3,
                tuples_in=int(5000 * (now - 100)),
                tuples_out=7,
                backlog=12,
                errors=errors,
                p50_ms=1.234,
                p99_ms=9.876,
            ),
        ),
        roots_open=4,
    )


def text_of(renderable):
    from rich.console import Console

    printed = io.StringIO()
    console = Console(file=printed, width=120)
    console.print(renderable)
    return printed.getvalue()


def test_rates_come_from_successive_snapshots():
    rates = Rates()
    rates.update(snapshot(100.0))
    assert rates.update(snapshot(102.0)) == {"lines": 1000.0, "count": 5000.0}


def test_the_picture_names_units_rates_and_progress():
    text = text_of(picture(snapshot(101.0), {"count": 5000.0}))
    for part in ("lines", "count", "5 k", "1.23", "9.88", "50 % read", "Ctrl-C"):
        assert part in text


def test_a_narrow_terminal_loses_columns_and_cuts_none():
    lines = text_of(picture(snapshot(101.0, errors=3), {"lines": 1000.0, "count": 5000.0}, width=38)).splitlines()
    assert lines[0].split() == ["unit", "sub-units", "tuples/s", "waiting"]
    assert lines[2].split() == ["count", "3", "5", "k", "12"]


def test_numbers_are_short():
    assert [short(n) for n in (7, 1234, 1_500_000, 2e9)] == ["7", "1.23 k", "1.5 M", "2 G"]


def test_progress_is_unknown_if_one_source_cannot_know():
    unknown = snapshot(101.0)
    assert percent(unknown) == 50.0
    spout = unknown.units[0]
    assert (
        percent(Snapshot(**{**vars(unknown), "units": (spout, UnitSnapshot(**{**vars(spout), "progress": None}))}))
        is None
    )


def test_lines_come_once_a_second_where_something_changed_else_now_and_then(capsys):
    view = PlainView()
    for now in (100.0, 100.2, 100.4, 101.1, 101.2):
        view.update(snapshot(now))
    view.update(Snapshot(**{**vars(snapshot(101.1)), "now": 103.0}))  # the rate has become 0: a line
    view.update(Snapshot(**{**vars(snapshot(101.1)), "now": 120.0}))
    view.update(Snapshot(**{**vars(snapshot(101.1)), "now": 134.0}))
    view.line("count/3", "hello")
    out = capsys.readouterr()
    assert len(out.err.splitlines()) == 4
    assert "50 %" in out.err
    assert "count x3" in out.err
    assert out.out == "[count/3] hello\n"


def test_the_live_view_prints_user_lines_above_itself():
    from rich.console import Console

    printed = io.StringIO()
    console = Console(file=printed, force_terminal=True, width=100)
    view = LiveView(console)
    view.update(snapshot(100.5))
    view.line("count/3", "a [b] c")
    view.close()
    assert "[count/3] a [b] c" in printed.getvalue()


@pytest.mark.parametrize(("number", "ended", "shown"), [(errno.EPIPE, 1, 1), (errno.ENOSPC, 0, 3)])
def test_a_view_that_cannot_be_shown_ends_the_run_in_order_only_if_nobody_reads_any_more(number, ended, shown):
    calls, signals = [], []

    class Broken:
        def line(self, mark, text):
            calls.append(text)
            raise OSError(number, "cannot be written")

        notice = update = line

    before = signal.signal(signal.SIGTERM, lambda *_: signals.append(1))
    try:
        view = ShieldedView(Broken())
        for text in "abc":
            view.line("count/1", text)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert (len(signals), len(calls)) == (ended, shown)


def test_below_the_picture_stands_what_is_wrong_and_how_far_it_is():
    after = replace(
        snapshot(101.0, errors=3),
        draining=True,
        roots_open=1,
        roots_replayed=2,
        deaths=1,
        checkpoint=7,
        restores=1,
        scaling=("count: grows",),
    )
    late = replace(after.units[1], late=1500)
    words = " ".join(text_of(picture(replace(after, units=(after.units[0], late)), {})).split())
    assert (
        "words ending in order 1 s 1 batch in flight 2 sent again 1.5 k late 1 process replaced checkpoint 7" in words
    )
    assert "went back 1 time 50 % read (Ctrl-C ends it in order)" in words
    assert "count: grows" in words
    assert "read" not in text_of(picture(replace(after, units=(late,)), {})), "where no source knows how far it is"


def test_the_live_view_shows_notices_and_takes_its_table_away_once():
    from rich.console import Console

    printed = io.StringIO()
    console = Console(file=printed, force_terminal=True, width=100)
    view = LiveView(console)
    view.close()
    view.update(snapshot(100.5))
    view.update(snapshot(101.5))
    view.notice("a [b] c")
    view.close()
    view.close()
    assert "a [b] c" in printed.getvalue()


def test_a_shielded_view_hands_on_until_its_reader_is_gone_and_ends_without_a_run():
    heard = []

    class Gone:
        def line(self, mark, text):
            heard.append((mark, text))

        def notice(self, text):
            heard.append(text)

        def update(self, snapshot):
            raise OSError(errno.EPIPE, "nobody reads")

        def close(self):
            heard.append("closed")
            raise OSError(errno.EPIPE, "nobody reads")

    view = ShieldedView(Gone())
    view.line("count/1", "a")
    view.notice("b")
    view.update(snapshot(100.5))  # no run is under way in this process, so that no signal ends it
    view.notice("c")
    view.close()
    assert heard == [("count/1", "a"), "b", "closed"]
    ShieldedView(PlainView()).close()
