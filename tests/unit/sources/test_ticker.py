from __future__ import annotations

import logging

import pytest

from esault.errors import TopologyError
from esault.sources.ticker import Ticker
from esault.topology.context import Context
from esault.topology.spout import EndOfStream

START = 1000.0


def opened(spout, clock, position=None):
    spout.check()
    spout.open(Context("ticks", now=lambda: clock[0]))
    if position is not None:
        spout.seek(position)
    return spout


class TestTicker:
    def test_the_first_comes_at_once_and_none_drifts(self):
        clock = [START]
        spout = opened(Ticker(10), clock)
        assert spout.read(5) == [(None, START)]
        assert spout.read(5) == []
        assert spout.next_due() == START + 10
        clock[0] += 13
        assert spout.read(5) == [(None, START + 10)]
        assert spout.due() == START + 10
        clock[0] += 7
        assert spout.read(5) == [(None, START + 20)]

    def test_those_that_are_late_while_it_runs_all_come(self):
        clock = [START]
        spout = opened(Ticker(1, missed="skip"), clock)
        clock[0] += 10
        assert [value for _, value in spout.read(4)] == [START + n for n in range(4)]
        assert len(spout.read(100)) == 7

    def test_it_ends_behind_as_many_as_are_asked_for(self):
        clock = [START]
        spout = opened(Ticker(1, count=2), clock)
        clock[0] += 10
        assert len(spout.read(100)) == 2
        with pytest.raises(EndOfStream):
            spout.read(100)

    def test_nothing_is_said_where_nothing_was_missed(self, caplog):
        clock = [START]
        spout = opened(Ticker(10), clock)
        spout.read(1)
        opened(Ticker(10), clock, spout.position()).read(1)
        assert not caplog.records

    @pytest.mark.parametrize(
        ("missed", "come", "left_out", "said"),
        [
            ("all", [10, 20, 30], 0, "each comes now"),
            ("once", [30], 2, "the last one comes now"),
            ("skip", [], 3, "left out"),
        ],
    )
    def test_what_was_missed_is_said_and_comes_as_asked_for(self, caplog, missed, come, left_out, said):
        clock = [START]
        spout = opened(Ticker(10, missed=missed), clock)
        assert spout.read(1)
        position = spout.position()
        clock[0] += 35
        again = opened(Ticker(10, missed=missed), clock, position)
        assert again.position() == position
        with caplog.at_level(logging.WARNING):
            assert [value - START for _, value in again.read(100)] == come
        assert f"3 missed while nothing ran, from 1970-01-01 00:16:50Z to 1970-01-01 00:17:10Z: {said}" in caplog.text
        assert again.due() == (START + 35 if come else None)
        assert sum(again.counters().values()) == left_out
        clock[0] += 5
        assert again.read(100) == [(None, START + 40)]
        assert len(caplog.records) == 1

    @pytest.mark.parametrize(
        "wrong", [{"every": 0}, {"every": "5"}, {"every": 1, "missed": "most"}, {"every": 1, "count": 0}]
    )
    def test_what_makes_no_sense_is_refused(self, wrong):
        with pytest.raises(TopologyError, match="Ticker"):
            Ticker(**wrong)
