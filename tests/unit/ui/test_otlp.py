"""Metrics and spans by OTLP, read by a server that decodes what is sent."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from esault.control.report.summary import Snapshot, UnitSnapshot
from esault.control.report.timeline import Page
from esault.errors import UsageError
from esault.messages.change_record import ChangeRecord
from esault.messages.user_metrics import MetricReading
from esault.runtime.session.request import TimelineView
from esault.ui.otlp_option import exported

pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
from otlp_receiver import Receiver, attributes

METRICS = (
    MetricReading("counter", "orders", "Orders that came", (("kind", "web"),), 3.0),
    MetricReading("histogram", "price", "", (), ((1.0, 10.0), (1, 2, 3), 50.0)),
)
SPOUT = UnitSnapshot(name="lines", kind="spout", sub_units=1, tuples_out=1000)
COUNT = UnitSnapshot(name="count", kind="bolt", sub_units=3, tuples_in=5000, p50_ms=1.5, p99_ms=9.0, metrics=METRICS)
RUN = Snapshot(
    topology="words", run="r1", phase="running", draining=False, now=103.5, seconds=3.5, units=(SPOUT, COUNT)
)
CHANGE = ChangeRecord(
    at=101.0, unit="count", kind="split", before=2, after=3, reason="it is full", policy="auto", moved_keys=7, moved_bytes=9, held=0.01, seconds=0.5,
)  # fmt: skip


@pytest.fixture
def receiver(monkeypatch):
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"):
        monkeypatch.delenv(name, raising=False)
    made = Receiver()
    yield made
    made.close()


class Heard:
    def __init__(self):
        self.notices: list[str] = []

    def line(self, mark, text):
        pass

    def notice(self, text):
        self.notices.append(text)

    def update(self, snapshot):
        pass


class TestMetrics:
    def test_all_that_prometheus_reads_is_sent(self, receiver):
        with exported(receiver.url, Heard()) as view:
            view.update(RUN)
        found, about = receiver.metrics()
        assert (about["service.name"], about["service.instance.id"]) == ("words", "r1")
        counted = found["esault.tuples_in"]
        assert (counted.sum.is_monotonic, counted.sum.aggregation_temporality) == (True, 2)
        points = {attributes(each)["unit"]: each for each in counted.sum.data_points}
        assert points["count"].as_int == 5000
        assert points["count"].start_time_unix_nano == 100 * 10**9
        assert points["count"].time_unix_nano == int(103.5 * 1e9)
        assert [each.as_int for each in found["esault.sub_units"].gauge.data_points] == [1, 3]
        assert found["esault.running_seconds"].unit == "s"

    def test_and_the_users_own(self, receiver):
        with exported(receiver.url, Heard()) as view:
            view.update(RUN)
        found, _ = receiver.metrics()
        (orders,), (price,) = found["orders"].sum.data_points, found["price"].histogram.data_points
        assert (orders.as_double, attributes(orders)["kind"]) == (3.0, "web")
        assert (list(price.explicit_bounds), list(price.bucket_counts), price.sum) == ([1.0, 10.0], [1, 2, 3], 50.0)

    def test_the_environment_says_where_as_for_other_programs(self, receiver, monkeypatch):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
        monkeypatch.setenv("OTEL_SERVICE_NAME", "shop")
        with exported(None, Heard()) as view:
            view.update(RUN)
        assert receiver.metrics()[1]["service.name"] == "shop"

    def test_without_either_nothing_is_loaded(self, monkeypatch):
        monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
        view = Heard()
        with exported(None, view) as same:
            assert same is view


class TestSpans:
    def spans_of(self, receiver, *snapshots, pages=()):
        with exported(receiver.url, Heard()) as view:
            for each in snapshots:
                view.update(each)
            for each in pages:
                assert isinstance(view, TimelineView)
                view.page(each)
        return {span.name: span for span in receiver.spans()}

    def test_a_checkpoint_has_one(self, receiver):
        done = replace(RUN, checkpoint=4, checkpoint_at=103.0, checkpoint_seconds=0.25)
        found = self.spans_of(receiver, RUN, done, done)
        span = found["checkpoint"]
        assert (span.start_time_unix_nano, span.end_time_unix_nano) == (102_750_000_000, 103_000_000_000)
        assert attributes(span) == {"esault.number": 4}
        assert len(receiver.spans()) == 1

    def test_a_change_has_one_with_its_reason(self, receiver):
        found = self.spans_of(receiver, RUN, pages=[Page(102.0, (), ((1.0, CHANGE),))])
        span = found["change split"]
        assert span.end_time_unix_nano - span.start_time_unix_nano == 500_000_000
        about = attributes(span)
        assert (about["esault.unit"], about["esault.before"], about["esault.after"]) == ("count", 2, 3)
        assert (about["esault.reason"], about["esault.moved_keys"]) == ("it is full", 7)

    def test_a_slow_batch_has_one_when_it_is_done(self, receiver):
        def at(now, oldest):
            return replace(RUN, now=now, units=(replace(SPOUT, oldest_roots=oldest), COUNT))

        found = self.spans_of(
            receiver, at(103.0, {1: (8, 102.5)}), at(104.0, {1: (8, 102.5)}), at(105.0, {1: (9, 104.9)}), at(106.0, {})
        )
        span = found["slow root"]
        assert (span.start_time_unix_nano, span.end_time_unix_nano) == (102_500_000_000, 105_000_000_000)
        assert attributes(span) == {"esault.unit": "lines", "esault.sub_unit": 1, "esault.number": 8}
        assert len(receiver.spans()) == 1


class TestTrouble:
    def test_no_receiver_is_said_once_and_ends_no_run(self, receiver, monkeypatch):
        monkeypatch.setattr("esault.ui.otlp.LAST", 0.2)
        receiver.server.socket.close()
        view = Heard()
        with exported("http://127.0.0.1:1", view) as shown:
            shown.update(RUN)
        assert [text for text in view.notices if "takes no metrics" in text] == view.notices

    @pytest.mark.parametrize("url", ["127.0.0.1:4318", "grpc://a:4317"])
    def test_what_is_no_url_is_refused(self, url):
        with pytest.raises(UsageError, match="OTLP over HTTP"), exported(url, Heard()):
            pass

    def test_where_the_library_is_missing_the_error_says_how_to_get_it(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "esault.ui.otlp", None)
        with pytest.raises(UsageError, match=r"pip install 'esault\[otlp\]'"), exported("http://a", Heard()):
            pass
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a")
        view = Heard()
        with exported(None, view) as same:
            assert same is view
        assert "pip install 'esault[otlp]'" in view.notices[0]
