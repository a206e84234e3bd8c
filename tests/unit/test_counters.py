"""A counter is declared once: totals, report, status, Prometheus and the metrics tables follow."""

from __future__ import annotations

from dataclasses import fields

import pytest

from esault import Bolt, Topology, by_key
from esault.control.report.summary import Snapshot, UnitSnapshot, snapshot
from esault.control.report.timeline import IN_WINDOWS
from esault.control.units.measurements import Measurements
from esault.counters import RunCounts, UnitCounts, UnitDurations, declared, values
from esault.messages.status import Status, SubUnitCounts
from esault.report import UnitReport
from esault.runtime.session.metrics_tables import WINDOWS
from esault.sources import Items
from esault.testing import LocalRuntime
from esault.ui.metric_families import families


class Same(Bolt):
    def process(self, key, value):
        self.emit(key, value)


def test_each_number_of_a_sub_unit_is_declared_with_a_meaning_and_a_unit():
    counters = declared(SubUnitCounts)
    assert set(counters) == {each.name for each in fields(SubUnitCounts)}
    assert set(counters) == {*declared(UnitCounts), *declared(RunCounts), "elements", "backpressured"}
    for counter in counters.values():
        assert counter.meaning.endswith(".")
        assert counter.unit


def test_the_report_and_the_snapshots_have_all_that_is_declared():
    assert set(declared(UnitCounts)) < {each.name for each in fields(UnitReport)}
    assert set(declared(UnitCounts)) < set(declared(UnitSnapshot))
    assert set(declared(RunCounts)) < set(declared(Snapshot))


@pytest.fixture(scope="module")
def ended():
    t = Topology("t")
    t.spout("in", Items([(i, i) for i in range(50)])).bolt("same", Same, grouping=by_key())
    local = LocalRuntime(t)
    local.run_until_drained()
    return local


def test_the_report_of_a_run_has_every_counter_and_every_duration(ended):
    report = ended.report()
    assert set(report.counts) == set(declared(RunCounts))
    assert report.counts["roots_acked"] == report.roots.acked > 0
    seen = {name for unit in report.units.values() for name in unit.durations_ms}
    assert seen == set(UnitDurations.declared())
    assert report.units["same"].durations_ms["latency"] == report.units["same"].latency_ms
    assert report.as_dict()["units"]["in"]["durations_ms"]["ack_latency"].keys() == {"p50", "p99", "max"}


def test_durations_are_exported_as_histograms_of_all_that_there_were(ended):
    found = {each.name: each for each in families(snapshot(ended.driver, 0.0)) if each.kind == "histogram"}
    assert {"esault_processing_seconds", "esault_end_to_end_seconds", "esault_ack_latency_seconds"} <= set(found)
    assert len(found) == len(UnitDurations.declared())
    [(labels, (bounds, counts, _))] = found["esault_processing_seconds"].points
    assert labels == {"topology": "t", "unit": "same"}
    assert len(counts) == len(bounds) + 1 and sum(counts) == 50
    [(labels, (_, counts, _))] = found["esault_ack_latency_seconds"].points
    assert labels["unit"] == "in" and sum(counts) == ended.report().roots.acked


def test_each_duration_has_a_meaning():
    assert all(each.meaning.endswith(".") for each in UnitDurations.declared().values())


def test_report_fields_of_before_are_there():
    assert {each.name for each in fields(UnitReport)} >= {
        "tuples_in", "tuples_out", "arrivals", "dropped", "late", "errors", "dead_letters", "state_lost",
        "dropped_frames", "latency_ms", "busy_seconds", "parallelism", "processes", "hosts", "backlog",
    }  # fmt: skip


def test_a_window_has_a_column_for_each_counter_that_says_so():
    assert [name for name, each in declared(UnitCounts).items() if each.in_windows] == IN_WINDOWS
    assert "errors" in IN_WINDOWS
    assert list(WINDOWS)[-len(IN_WINDOWS) :] == IN_WINDOWS
    assert WINDOWS["errors"] is int


def test_a_sub_unit_that_died_keeps_what_it_counted_and_loses_what_it_held():
    measured = Measurements()
    rows = SubUnitCounts(**{name: number for number, name in enumerate(declared(SubUnitCounts), 1)})
    measured.update(Status(1, 0.0, rows))
    assert values(SubUnitCounts, measured.counts) == values(SubUnitCounts, rows)
    measured.died(1)
    for name, counter in declared(SubUnitCounts).items():
        lost = {"state_lost": rows.elements, "roots_lost": rows.roots_open}.get(name, 0)
        assert getattr(measured.counts, name) == (0 if counter.gauge else getattr(rows, name)) + lost, name
