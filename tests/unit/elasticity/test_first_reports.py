"""What units did in the first moments of a run, from the reports of their sub-units."""

from __future__ import annotations

import pytest

from esault.elasticity.first_reports import LENGTH, FirstReports
from esault.messages.probe import Usage
from esault.messages.status import Status, SubUnitCounts

STEP = 0.05


def told(sub_units, times=4, first=100.0):
    """Reports of some sub-units; `sub_units`: number -> what it counts in a step, and what waits at each report."""
    reports = FirstReports()
    for number, (step, backlogs) in sub_units.items():
        for i in range(times):
            rows = SubUnitCounts(
                tuples_in=step.get("processed", 0) * i,
                tuples_out=step.get("emitted", 0) * i,
                arrivals=step.get("arrivals", 0) * i,
                busy_seconds=step.get("busy", 0.0) * i,
                backpressured=step.get("held", 0.0) * i,
                backlog=backlogs[i],
            )
            usage = None if "cpu" not in step else Usage(cpu=step["cpu"] * i, cpu_wait=step.get("wait", 0.0) * i)
            reports.add(Status(number, first + STEP * i, rows, usage=usage, lag=step.get("lag")))
    return reports


def test_a_window_is_what_all_sub_units_of_a_unit_did_in_the_last_tenth_of_a_second():
    one = {"processed": 10, "emitted": 20, "arrivals": 11, "busy": 0.04, "cpu": 0.01, "wait": 0.005}
    other = {"processed": 5, "emitted": 10, "arrivals": 6, "busy": 0.05, "cpu": 0.02, "wait": 0.0}
    found = told({1: (one, [0, 8, 3, 9]), 2: (other, [0, 1, 2, 3])}).window([1, 2], False)
    assert found is not None
    window = found.window
    assert (window.start, window.end) == (pytest.approx(100.15 - LENGTH), pytest.approx(100.15))
    assert (window.processed, window.emitted, window.arrivals) == tuple(map(pytest.approx, (30.0, 60.0, 34.0)))
    assert (window.busy, window.width) == (pytest.approx(0.18), 2)
    assert (window.waiting_before, window.waiting, found.least_waiting) == (9, 12, 3 + 1)
    assert found.needs == pytest.approx((0.02 + 0.01 + 0.04) / LENGTH)


def test_a_spout_reads_what_it_emits_and_is_blind_where_it_is_held_back_and_does_not_know_what_is_left():
    held = {"emitted": 100, "held": 0.04}
    found = told({1: (held, [0] * 4)}).window([1], True)
    assert found is not None
    assert found.window.arrivals == found.window.processed == pytest.approx(200.0)
    assert found.window.backpressured == pytest.approx(0.8)
    assert found.window.blind
    known = told({1: ({**held, "lag": 7}, [0] * 4)}).window([1], True)
    assert known is not None and not known.window.blind and known.window.lag == 7.0
    free = told({1: ({**held, "held": 0.01}, [0] * 4)}).window([1], True)
    assert free is not None and not free.window.blind


def test_there_is_none_before_each_sub_unit_has_reported_for_long_enough():
    step = ({"processed": 10}, [1] * 4)
    assert told({1: step}, times=2).window([1], False) is None
    reports = told({1: step}, times=3)
    assert reports.window([1], False) is not None
    assert reports.window([1, 2], False) is None
    assert reports.window([], False) is None


def test_what_the_processes_need_is_unknown_where_one_does_not_tell():
    found = told({1: ({"processed": 1, "cpu": 0.01}, [1] * 4), 2: ({"processed": 1}, [1] * 4)}).window([1, 2], False)
    assert found is not None and found.needs is None
