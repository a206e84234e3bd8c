"""Live views and the report say the same of a run that has ended."""

from __future__ import annotations

import math

from esault import Bolt, Topology, by_key
from esault.control.report.summary import metric_value, snapshot
from esault.sinks import Collect
from esault.sinks.json_row import encode_value
from esault.sources import Items
from esault.testing import LocalRuntime


class Count(Bolt):
    def __init__(self):
        self.total = 0

    def process(self, key, value):
        self.total += value
        self.emit(key, self.total)


def test_a_run_that_has_ended_gets_no_longer_while_its_processes_leave():
    t = Topology("short")
    t.spout("rows", Items([("a", 1), ("b", 2)])).sink("out", Collect())
    local = LocalRuntime(t)
    local.run_until_drained()
    ended = local.driver.ended_at
    assert ended is not None
    later = snapshot(local.driver, ended + 5)
    assert (later.phase, later.seconds) == ("ended", local.report().seconds)


def test_it_pauses_before_each_unit_for_what_else_waits_for_the_processor():
    t = Topology("two")
    t.spout("rows", Items([("a", 1)])).bolt("count", Count, grouping=by_key()).sink("out", Collect())
    local = LocalRuntime(t)
    local.run_until_drained()
    paused: list[int] = []
    seen = snapshot(local.driver, local.clock(), pause=lambda: paused.append(1))
    assert len(paused) == len(seen.units) == 2
    assert seen == snapshot(local.driver, local.clock())


def test_in_the_report_stand_whole_numbers_where_they_are_whole_and_of_a_histogram_how_many_and_their_sum():
    assert [metric_value(value) for value in (3.0, 2.5, ((1.0,), (4, 5), 6.5))] == [3, 2.5, {"count": 9, "sum": 6.5}]
    assert isinstance(metric_value(3.0), int)


def test_what_is_no_finite_number_is_the_text_that_rows_in_json_have():
    values = [math.nan, math.inf, -math.inf, ((1.0,), (0, 1), math.nan)]
    texts = [metric_value(value) for value in values]
    assert texts == ["NaN", "Infinity", "-Infinity", {"count": 1, "sum": "NaN"}]
    assert [encode_value(value) for value in values[:3]] == [f'"{text}"'.encode() for text in texts[:3]]
