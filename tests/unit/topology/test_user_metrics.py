"""Metrics of a user's own: made by name, added up, kept out of state."""

from __future__ import annotations

import math
import pickle

import pytest

from esault import Bolt, Context, Topology, by_key
from esault.control.report.summary import metric_value
from esault.messages.user_metrics import MetricReading, add_up
from esault.sources import Items
from esault.testing import LocalRuntime
from esault.topology.user_metrics import MOST, UserMetrics


@pytest.fixture
def context():
    return Context("count")


def read(context):
    return {str(MetricReading(*each)): each[4] for each in context.metrics.readings()}


class TestOneSubUnit:
    def test_the_same_name_and_labels_are_the_same_metric(self, context):
        context.counter("orders").inc()
        context.counter("orders", "said later").inc(2)
        context.counter("orders", kind="web").inc(5)
        assert read(context) == {"orders": 3, 'orders{kind="web"}': 5}

    def test_a_gauge_goes_up_and_down(self, context):
        gauge = context.gauge("size")
        gauge.set(3)
        gauge.inc(2)
        gauge.dec()
        assert read(context) == {"size": 4}

    @pytest.mark.parametrize("value, place", [(0.5, 0), (1, 0), (1.5, 1), (10, 1), (11, 2)])
    def test_a_histogram_counts_up_to_each_bound(self, context, value, place):
        context.histogram("price", buckets=(10, 1)).observe(value)
        counts = [0, 0, 0]
        counts[place] = 1
        assert read(context) == {"price": ((1.0, 10.0), tuple(counts), value)}

    def test_a_last_bound_of_infinity_and_one_that_is_said_twice_change_nothing(self, context):
        context.histogram("price", buckets=(1, 10, 10.0, math.inf)).observe(11)
        assert read(context) == {"price": ((1.0, 10.0), (0, 0, 1), 11)}

    def test_what_is_no_number_is_above_all_bounds(self, context):
        context.histogram("price", buckets=(10,)).observe(math.nan)
        ((_, counts, total),) = read(context).values()
        assert counts == (0, 1) and math.isnan(total)

    def test_what_was_never_used_is_not_there(self, context):
        context.counter("orders")
        assert read(context) == {}

    @pytest.mark.parametrize(
        "call, error",
        [
            (lambda c: c.counter("orders").inc(-1), "only grows"),
            (lambda c: c.counter("orders").inc(math.nan), "only grows"),
            (lambda c: c.counter("no name"), "no name of a metric"),
            (lambda c: c.counter("esault_mine"), "no name of a metric"),
            (lambda c: c.counter("orders\n"), "no name of a metric"),
            (lambda c: c.counter("orders", **{"http.method": "GET"}), "'http.method' is no name of a label"),
            (lambda c: c.counter("orders", größe="S"), "no name of a label"),
            (lambda c: c.counter("orders", unit="a"), "the engine's own"),
            (lambda c: (c.counter("orders"), c.gauge("orders")), "is a counter already"),
            (lambda c: (c.counter("orders"), c.gauge("orders", kind="a")), "is a counter already"),
        ],
    )
    def test_what_cannot_be_is_refused_with_the_reason(self, context, call, error):
        with pytest.raises(ValueError, match=error):
            call(context)

    def test_keys_as_labels_do_not_fill_the_memory_and_are_told_of_once(self, context, caplog):
        for key in range(MOST + 50):
            context.counter("orders", key=str(key)).inc()
        assert len(read(context)) == MOST
        assert len(caplog.records) == 1
        assert "not keys" in caplog.text

    @pytest.mark.parametrize("kind", ["counter", "gauge", "histogram"])
    def test_an_object_may_keep_one_and_finds_it_again_where_it_comes_to(self, monkeypatch, kind):
        here, there = UserMetrics(), UserMetrics()
        more = ((1.0,),) if kind == "histogram" else ()
        made = here.get_or_create(kind, "orders", "", {"shop": "a"}, *more)
        monkeypatch.setattr(UserMetrics, "here", there)
        found = pickle.loads(pickle.dumps(made))
        assert found is there.get_or_create(kind, "orders", "", {"shop": "a"})
        assert getattr(found, "bounds", (1.0,)) == (1.0,)


class TestAdded:
    def test_counters_and_histograms_of_sub_units_are_added_up(self):
        counts = [MetricReading("counter", "a", "", (), n) for n in (1, 2)]
        times = [MetricReading("histogram", "b", "", (), ((1.0,), (n, 1), 0.5)) for n in (1, 2)]
        gauges = [MetricReading("gauge", "c", "", (), 5).with_labels(sub_unit=i) for i in (1, 2)]
        found = {str(each): metric_value(each.value) for each in add_up([*counts, *times, *gauges])}
        assert found == {"a": 3, "b": {"count": 5, "sum": 1.0}, 'c{sub_unit="1"}': 5, 'c{sub_unit="2"}': 5}


class Count(Bolt):
    def open(self, context):
        self.orders = context.counter("orders", "Orders that came")

    def process(self, key, value):
        self.orders.inc()
        self.context.histogram("price", buckets=[5]).observe(value)
        self.emit(key, value)


class TestARun:
    def topology(self):
        t = Topology("shop")
        t.spout("rows", Items([(i % 4, i) for i in range(20)])).bolt("count", Count, by_key(), parallelism=2)
        return t

    def test_the_report_has_them(self):
        local = LocalRuntime(self.topology())
        local.run_until_drained()
        assert local.report().units["count"].metrics == {"orders": 20, "price": {"count": 20, "sum": 190.0}}

    def test_what_sub_units_that_are_over_have_counted_stays(self):
        local = LocalRuntime(self.topology())
        local.run_until(lambda: local.report().units["count"].tuples_in > 0)
        local.kill(local.sub_units("count")[0])
        local.run_until_drained()
        assert local.report().units["count"].metrics["orders"] >= 20
