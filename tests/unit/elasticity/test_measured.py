"""Latencies of a run: those of one unit, and those of all tuples at their end, also in chained bolts."""

from __future__ import annotations

from types import SimpleNamespace

from esault.elasticity.measured import latencies
from esault.histogram import Histogram


def measured(chained=None, **seconds):
    def histogram(name):
        made = Histogram()
        for each in seconds.get(name, ()):
            made.record(each)
        return made

    return SimpleNamespace(histogram=histogram, chained=chained or {})


def test_latencies_are_of_a_unit_or_of_all_ends():
    units = {
        "split": SimpleNamespace(measurements=measured({"count": measured(end_to_end=(4.0,) * 3)}, latency=(1.0, 1.0))),
        "sum": SimpleNamespace(measurements=measured(latency=(2.0,), end_to_end=(8.0,))),
    }
    assert latencies(units, "split").count == 2
    assert latencies(units, "sum").count == 1
    whole = latencies(units, "")
    assert whole.count == 4
    assert whole.quantile(0.5) < 5.0 < 7.0 < whole.quantile(1.0)
    assert latencies({}, "").count == 0
