"""Figures of the bench at nearly full load, from rows that are known."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from bench.kit.steady_latency import BIN, WITHIN, milliseconds
from bench.latency import at_load
from bench.latency.at_load import BAR, DISTURBED, BareLoop, behind


def _row(due, ms, count):
    return int(due / BIN), round(math.log(ms / 1000) / WITHIN), count


ROWS = [_row(1000.05, 2.0, 900), _row(1001.05, 20.0, 99), _row(1005.05, 400.0, 1)]


def test_words_count_by_how_late_they_were():
    found = behind(ROWS, [])
    assert (found["words"], found["late"]) == (1000, 1)
    assert found["p50"] == pytest.approx(2.0, rel=0.05)
    assert found["p99"] == pytest.approx(20.0, rel=0.05)
    assert found["worst"] == pytest.approx(400.0, rel=0.05)
    assert [round(each["due"], 3) for each in found["longest"]] == [1005.0, 1001.0, 1000.0]
    assert found["longest"][0]["ms"] > BAR
    assert found["machine"] == found["disturbed_seconds"] == 0.0
    assert found["undisturbed"]["words"] == 1000


def test_what_was_due_while_the_bare_loop_was_late_is_left_out_of_the_second_figures():
    woke_just_now, woke_late = (1001.06, DISTURBED / 2), (1005.1, 0.3)
    found = behind(ROWS, [woke_just_now, woke_late])
    assert found["machine"] == pytest.approx(300.0)
    assert [each["disturbed"] for each in found["longest"]] == [True, False, False]
    assert found["worst"] == pytest.approx(400.0, rel=0.05)
    assert found["undisturbed"]["worst"] == pytest.approx(20.0, rel=0.05)
    assert found["undisturbed"]["words"] == 999
    assert found["disturbed_seconds"] == pytest.approx(BIN)


def test_where_all_of_it_was_disturbed_there_are_no_second_figures():
    found = behind([_row(1005.05, 400.0, 1)], [(1005.1, 0.3)])
    assert found["undisturbed"] == {"p50": None, "p99": None, "p99.9": None, "worst": None, "words": 0, "seconds": 0.0}
    assert milliseconds(_row(0, 400.0, 1)[1]) == pytest.approx(400.0, rel=0.05)


def test_the_bare_loop_notes_when_it_was_late_and_by_how_much(monkeypatch):
    clock = iter([0.0, 0.001, 0.0, 0.0, 0.05, 0.0015])  # how long each sleep is longer than it should be
    now = [1000.0]

    def sleep(seconds):
        more = next(clock)
        now[0] += seconds + more
        if more == 0.0015:
            loop._over.set()

    monkeypatch.setattr(at_load, "time", SimpleNamespace(time=lambda: now[0], sleep=sleep))
    loop = BareLoop()
    loop.run()
    assert [seconds for _, seconds in loop.late] == pytest.approx([0.05, 0.0015])
    assert loop.late[0][0] == pytest.approx(1000.056)
