"""Latency objectives as people read them, and what a run has cost."""

from __future__ import annotations

from types import SimpleNamespace as Made

import pytest

from esault.control.report.objectives import standing, sub_unit_seconds
from esault.elasticity.objective import LatencyObjective, ObjectiveStatus


def status(**said):
    return ObjectiveStatus(LatencyObjective.parse("p99<100ms"), **said)


@pytest.mark.parametrize(
    ("recent", "said"),
    [(0.0123, "12.3 ms"), (0.9994, "999 ms"), (0.9996, "1.0 s"), (1.0, "1.0 s"), (1234.5, "1,234.5 s"), (0.0, "0 ms")],
)
def test_a_time_is_said_in_its_size(recent, said):
    text = standing(status(recent=recent, seconds=9, seconds_over=3))
    assert f": {said} of late; over it in 3 of 9 s" in text


def test_the_burn_rate_is_said_where_it_is_known():
    assert "12 ms of late, burn rate 1,234.50; " in standing(status(recent=0.012, recent_burn_rate=1234.5))


def test_where_nothing_has_come_to_its_end_that_is_said():
    assert standing(status()).endswith("nothing has come to its end of late")


def run(*histories):
    return Made(units={number: Made(history=history) for number, history in enumerate(histories)})


def test_the_cost_is_each_width_for_its_time():
    assert sub_unit_seconds(run([(0.0, 1), (10.0, 3), (15.0, 0)], [(5.0, 2)]), 20.0) == 10 + 15 + 0 + 30
    assert sub_unit_seconds(run(), 20.0) == sub_unit_seconds(run([]), 20.0) == 0.0


def test_time_that_has_not_come_costs_nothing():
    assert sub_unit_seconds(run([(30.0, 4)]), 20.0) == 0.0
