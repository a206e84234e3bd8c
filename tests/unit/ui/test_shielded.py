"""A view that cannot stop a run."""

from __future__ import annotations

import errno
import signal

import pytest

from esault.ui.shielded import ShieldedView


class View:
    def __init__(self, error=None):
        self.error, self.seen, self.closed = error, [], 0

    def _take(self, *what):
        self.seen.append(what)
        if self.error is not None:
            raise self.error

    line = notice = update = _take

    def close(self):
        self.closed += 1
        if self.error is not None:
            raise self.error


def test_all_is_handed_on():
    view = View()
    shielded = ShieldedView(view)
    shielded.line("a", "b")
    shielded.notice("c")
    shielded.update("d")
    shielded.close()
    assert view.seen == [("a", "b"), ("c",), ("d",)] and view.closed == 1


def test_a_full_disk_is_tried_again():
    view = View(OSError(errno.ENOSPC, "full"))
    shielded = ShieldedView(view)
    shielded.notice("one")
    view.error = None
    shielded.notice("two")
    assert view.seen == [("one",), ("two",)]


def test_the_run_is_asked_once_to_end_where_the_reader_has_gone():
    asked = []
    before = signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
    try:
        view = View(BrokenPipeError(errno.EPIPE, "gone"))
        shielded = ShieldedView(view)
        for _ in range(3):
            shielded.line("a", "b")
        shielded.close()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert asked == [1] and view.seen == [("a", "b")]


def test_mistakes_in_a_view_are_not_hidden():
    with pytest.raises(ZeroDivisionError):
        ShieldedView(View(ZeroDivisionError())).notice("x")


def test_a_view_that_cannot_be_closed_needs_not_be():
    ShieldedView(object()).close()
