"""Latency objectives: how they are written, and what is counted of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault import Bolt, Topology, UsageError, by_key
from esault.elasticity.objective import LatencyObjective, ObjectiveTracker, parsed
from esault.histogram import Histogram
from esault.sources import Items


class Count(Bolt):
    def process(self, key, value):
        pass


def plan():
    t = Topology("words")
    t.spout("lines", Items([])).bolt("count", Count, by_key())
    return t.plan()


@pytest.mark.parametrize(
    ("text", "quantile", "seconds", "unit", "again"),
    [
        ("p99 < 100 ms", 0.99, 0.1, "", "p99 < 100 ms"),
        (" p99<100ms ", 0.99, 0.1, "", "p99 < 100 ms"),
        ("p99.9 < 1.5 s", 0.999, 1.5, "", "p99.9 < 1.5 s"),
        ("count=p50 < 250 us", 0.5, 0.00025, "count", "count=p50 < 250 us"),
        ("count = p95 < 2 min", 0.95, 120.0, "count", "count=p95 < 2 min"),
        ("p99 < 1000 ms", 0.99, 1.0, "", "p99 < 1 s"),
        ("p99 < 0.5 us", 0.99, 5e-7, "", "p99 < 0.5 us"),
    ],
)
def test_it_is_written_and_read(text, quantile, seconds, unit, again):
    found = LatencyObjective.parse(text)
    assert (found.quantile, found.seconds, found.unit) == (pytest.approx(quantile), pytest.approx(seconds), unit)
    assert str(found) == again
    assert LatencyObjective.parse(again) == found


@pytest.mark.parametrize(
    "text", ["", "100 ms", "p99", "p99 < 100", "p99 > 100 ms", "p100 < 1 s", "p0 < 1 s", "p99 < 0 ms"]
)
def test_what_cannot_be_is_refused_with_how_it_is_written(text):
    with pytest.raises(UsageError, match=r"objective .*(write 'p99 < 100 ms'|above p0 and below p100)"):
        LatencyObjective.parse(text)


def test_it_names_a_bolt_of_the_plan():
    assert parsed(plan(), ["count=p99 < 1 s", "p90 < 2 s"])[0].unit == "count"
    with pytest.raises(UsageError, match="'cuont'.*count"):
        parsed(plan(), ["cuont=p99 < 1 s"])
    with pytest.raises(UsageError, match="'lines' is a spout"):
        parsed(plan(), ["lines=p99 < 1 s"])


def watched(*windows, objective="p90 < 100 ms"):
    """The status after windows of a second; each has latencies in seconds and how many there were."""
    tracker = ObjectiveTracker([LatencyObjective.parse(objective)])
    seen = Histogram()
    for second, window in enumerate(windows):
        for seconds, many in window.items():
            seen.record(seconds, many)
        copy = Histogram()
        copy.merge(seen)
        tracker.observe(100.0 + second, lambda unit, copy=copy: copy)
    return tracker.statuses[0]


def test_a_second_is_over_where_more_were_slow_than_may_be():
    status = watched({0.01: 90, 0.5: 10}, {0.01: 89, 0.5: 11}, {}, {0.5: 1})
    assert (status.tuples, status.slow) == (201, 22)
    assert (status.seconds, status.seconds_over) == (3, 2)
    assert status.burn_rate == pytest.approx(22 / 201 / 0.1)
    assert not status.kept


def test_of_late_are_the_last_five_windows():
    status = watched({0.5: 100}, *[{0.01: 10}] * 5)
    assert status.recent_burn_rate == 0.0
    assert status.recent == pytest.approx(0.01, rel=0.05)
    assert status.measured == pytest.approx(0.5, rel=0.05)
    assert watched({}, {}).recent_burn_rate is None


def test_it_looks_once_a_second():
    tracker, looks = ObjectiveTracker([LatencyObjective.parse("p99 < 1 s")]), []

    def latencies(unit):
        looks.append(unit)
        return Histogram()

    for tenth in range(31):
        tracker.observe(10 + tenth / 10, latencies)
    assert len(looks) == 4
    tracker.observe(13.01, latencies, last=True)
    assert looks == [""] * 5


@given(st.lists(st.dictionaries(st.sampled_from([0.001, 0.05, 0.2, 3.0]), st.integers(1, 50)), max_size=12))
def test_windows_add_up_to_all(windows):
    status = watched(*windows)
    assert status.tuples == sum(sum(w.values()) for w in windows)
    assert status.slow == sum(n for w in windows for seconds, n in w.items() if seconds > 0.1)
    assert status.seconds == sum(bool(w) for w in windows)
    assert status.kept == (status.slow <= 0.1 * status.tuples + 1e-9)
