"""Metrics of a user's own, added up over sub-units."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.messages.user_metrics import MetricReading, add_up

BOUNDS = (1.0, 10.0)
VALUES = {
    "counter": st.integers(0, 9),
    "gauge": st.integers(0, 9),
    "histogram": st.tuples(st.just(BOUNDS), st.tuples(*[st.integers(0, 9)] * 3), st.integers(0, 9)),
}


def reading(kind="counter", value=1, name="calls", labels=()):
    return MetricReading(kind, name, "", labels, value)


READINGS = st.sampled_from([("counter", "calls"), ("gauge", "open"), ("histogram", "took")]).flatmap(
    lambda each: st.builds(
        reading, st.just(each[0]), VALUES[each[0]], st.just(each[1]), st.sampled_from([(), (("to", "db"),)])
    )
)


@given(st.lists(READINGS, max_size=8))
def test_counts_are_sums_and_of_gauges_the_last_counts(readings):
    found = {(each.name, each.labels): each for each in add_up(readings)}
    assert found.keys() == {(each.name, each.labels) for each in readings}
    for (name, labels), each in found.items():
        values = [r.value for r in readings if (r.name, r.labels) == (name, labels)]
        if each.kind == "counter":
            assert each.value == sum(values)
        elif each.kind == "gauge":
            assert each.value == values[-1]
        else:
            bounds, counts, total = each.value
            assert bounds == BOUNDS
            assert counts == tuple(map(sum, zip(*(value[1] for value in values))))
            assert total == sum(value[2] for value in values)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (reading(value=5), reading("gauge", 2)),
        (reading("histogram", ((1.0,), (1, 2), 3.0)), reading("histogram", ((2.0,), (4, 5), 6.0))),
    ],
)
def test_of_what_does_not_fit_together_the_last_counts(before, after):
    assert list(add_up([before, after])) == [after]


def test_it_is_named_as_prometheus_does():
    assert str(reading()) == "calls"
    assert str(reading().with_labels(to="db", sub_unit=3)) == 'calls{to="db",sub_unit="3"}'
