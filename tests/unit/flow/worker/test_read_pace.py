"""A spout that has much is asked at once, one that trickles every tenth of a millisecond, one that has nothing ever less."""

from __future__ import annotations

import pytest

from esault.flow.worker.read_pace import LONGEST, PROBED, SHORTEST, ReadPace


def _reads(pace, source, seconds, work=0.00004, limit=128):
    """Ask as the spout does for so long; how often, and the rows of each read that gave some. `source(now)`: what it has."""
    now, asked, got = 0.0, 0, []
    while now < seconds:
        now = max(now, pace.at)
        asked += 1
        rows = source(now, limit)
        if rows:
            got.append(rows)
            pace.some(now, rows, limit)
            now += work
        else:
            pace.nothing(now)
            now += work / 4
    return asked, got


class Paced:
    """So many rows a second."""

    def __init__(self, rate):
        self.rate, self.given = rate, 0

    def __call__(self, now, limit):
        rows = min(limit, int(now * self.rate) - self.given)
        self.given += rows
        return rows


def test_an_idle_source_is_asked_ever_less():
    asked, got = _reads(ReadPace(), lambda now, limit: 0, 1.0)
    assert not got
    assert asked <= 1.0 / LONGEST + 20


@pytest.mark.parametrize("rows", [1, 3, 127])
def test_a_source_that_gives_less_than_it_is_asked_for_is_not_held_up(rows):
    asked, got = _reads(ReadPace(), lambda now, limit: rows, 0.1)
    assert len(got) == asked == pytest.approx(0.1 / 0.00004, rel=0.01)


@pytest.mark.parametrize("rows", [1, 3, 127])
def test_nor_for_long_after_it_once_had_nothing(rows):
    asked, _ = _reads(ReadPace(), lambda now, limit: 0 if now == 0 else rows, 0.1)
    assert asked >= 0.95 * 0.1 / 0.00004


@pytest.mark.parametrize("rate", [50_000, 100_000, 400_000])
def test_what_trickles_is_collected_for_a_moment(rate):
    _, got = _reads(ReadPace(), Paced(rate), 0.2)
    assert sum(got) >= 0.99 * rate * 0.2 - 128
    assert len(got) <= (1 + 2 / PROBED) * 0.2 / SHORTEST
    assert max(got[5:]) <= rate * SHORTEST * 2 + 2


def test_when_it_has_much_again_it_is_asked_at_once():
    pace = ReadPace()
    pace.nothing(0.0)
    pace.some(1.0, 5, 128)
    assert pace.at == 1.0 + SHORTEST
    pace.some(1.1, 128, 128)
    assert pace.at < 1.1
    pace.some(1.2, 1, 128)  # the end of what it had
    assert pace.at < 1.2


@pytest.mark.parametrize("rate", [10, 800, 5000])
def test_a_source_that_knows_when_something_comes_is_asked_then_alone(rate):
    pace, now, asked, got = ReadPace(), 0.0, 0, 0
    while now < 1.0:
        now = max(now, pace.at)
        asked += 1
        due = (got + 1) / rate
        if now >= due - 1e-9:
            got += 1
            pace.some(now, 1, 128, (got + 1) / rate)
            now += 0.00004
        else:
            pace.nothing(now, due)
    assert got >= rate - 1
    assert asked <= got + 2


def test_one_that_gives_all_that_was_asked_for_is_asked_at_once_whatever_it_says():
    pace = ReadPace()
    pace.some(1.0, 128, 128, 99.0)
    assert pace.at == 1.0


def test_one_of_which_something_was_due_that_did_not_come_is_asked_ever_less():
    # A pace set for a file that is followed: the next line is due, and has not been written.
    pace, now, asked = ReadPace(), 0.0, 0
    while now < 1.0:
        now = max(now, pace.at)
        asked += 1
        pace.nothing(now, 0.0)
    assert asked <= 1.0 / LONGEST + 20
    assert pace.resting
