"""Reports are at round times, ever later ones, and close to each other in the first moments."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.flow.worker.report_times import FIRST, ReportTimes


def times(every=0.25, first_every=0.05, joins=False) -> ReportTimes:
    build: Any = SimpleNamespace(
        settings=SimpleNamespace(status_every=every, first_status_every=first_every), joins=joins
    )
    return ReportTimes(build)


def followed(report_times, at, until):
    """All times of reports from when processing begins at `at`, each told at the very moment at which it is due."""
    due = [report_times.begin(at)]
    while due[-1] < until and len(due) < 1000:
        due.append(report_times.after(due[-1]))
    return due


def test_in_the_first_moments_they_are_close_and_round_then_apart():
    assert followed(times(), 100.01, 100.9) == pytest.approx(
        [100.05, 100.1, 100.15, 100.2, 100.25, 100.3, 100.35, 100.4, 100.45, 100.7, 100.95]
    )


def test_one_that_joins_a_run_under_way_has_no_first_moments():
    assert followed(times(joins=True), 100.0, 100.6) == pytest.approx([100.25, 100.5, 100.75])


@given(st.floats(0, 2e9), st.sampled_from([0.05, 0.1, 0.02, 0.3]))
def test_the_next_is_always_later_also_where_a_time_is_no_exact_multiple(at, every):
    due = followed(times(first_every=every), at, at + FIRST + 1)
    assert all(before < after for before, after in itertools.pairwise(due))


@given(st.integers(0, 10**9), st.sampled_from([0.05, 0.1, 0.02, 0.3]))
def test_told_at_a_round_time_the_next_is_the_round_time_behind(number, every):
    report_times = times(first_every=every)
    at = number * every
    report_times.begin(at)
    assert report_times.round_after(at) == pytest.approx(at + every, abs=every / 1000)
