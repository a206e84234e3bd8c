"""A run's metrics and spans, sent by OTLP over HTTP; all of it in the command's process.

Spans are made of what the driver tells anyway: checkpoints, changes of parallelism, and batches that are slow. Of these a few a
second are seen at most, the oldest of each spout's sub-unit at each report: a sample, at no cost to those that are quick.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from typing import Any

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from esault.control.report.summary import Snapshot
from esault.control.report.timeline import Page
from esault.runtime.session.request import LogView, TimelineView, View
from esault.ui.metric_families import MetricFamily, families
from esault.version import VERSION

__all__ = ["OtlpView", "metrics_data"]

#: seconds after which a batch that is not processed is slow, and has a span
SLOW = 1.0
#: seconds that the last sending may take
LAST = 5.0
_SCOPE = InstrumentationScope("esault", VERSION)
_UNITS = {"seconds": "s", "bytes": "By"}


class OtlpView:
    """Sends a run's metrics and spans, and hands everything on to another view."""

    def __init__(self, url: str | None, view: View) -> None:
        """`url` of the receiver, without /v1/...; None: where the environment says."""
        self._url, self._view = url.rstrip("/") if url is not None else None, view
        self._every = float(os.environ.get("OTEL_METRIC_EXPORT_INTERVAL", "60000")) / 1000
        self._snapshot: Snapshot | None = None
        self._resource: Any = None
        self._tracer: Any = None
        self._provider: Any = None
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._failed = False
        self._checkpoint = 0
        #: (unit, sub-unit) -> number and opening of a batch that is slow
        self._slow: dict[tuple[str, int], tuple[int, float]] = {}
        self._began = 0.0
        # it would tell of each sending that fails; this module says it once
        logging.getLogger("opentelemetry.exporter.otlp.proto.http").setLevel(logging.CRITICAL)

    # as a view ---------------------------------------------------------------------------------

    def line(self, mark: str, text: str) -> None:
        """A line that a process printed."""
        self._view.line(mark, text)

    def notice(self, text: str) -> None:
        """Something the user should know."""
        self._view.notice(text)

    def log(self, record: logging.LogRecord) -> bool:
        """A record that user code has logged."""
        return isinstance(self._view, LogView) and self._view.log(record)

    def update(self, snapshot: Snapshot) -> None:
        """The run as it is."""
        self._snapshot = snapshot
        if self._thread is None:  # all processes have been forked by now: none inherits the threads
            self._begin(snapshot)
        if snapshot.seconds and not self._began:
            self._began = snapshot.now - snapshot.seconds
        self._see_checkpoint(snapshot)
        self._see_slow(snapshot)
        self._view.update(snapshot)

    def page(self, page: Page) -> None:
        """A window of the timeline, with the changes that have ended."""
        for _, change in page.changes:
            about = {"unit": change.unit, "before": change.before, "after": change.after, "reason": change.reason}
            about |= {"policy": change.policy, "moved_keys": change.moved_keys, "held_seconds": change.held}
            if change.dropped:
                about["dropped"] = change.dropped
            self._span(f"change {change.kind}", change.at, change.at + change.seconds, about)
        if isinstance(self._view, TimelineView):
            self._view.page(page)

    def close(self) -> None:
        """The run has ended: send what is left, for some seconds at most."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(LAST)

    # spans -------------------------------------------------------------------------------------

    def _see_checkpoint(self, snapshot: Snapshot) -> None:
        if snapshot.checkpoint_at and snapshot.checkpoint != self._checkpoint:
            self._checkpoint = snapshot.checkpoint
            end = snapshot.checkpoint_at
            self._span("checkpoint", end - snapshot.checkpoint_seconds, end, {"number": snapshot.checkpoint})

    def _see_slow(self, snapshot: Snapshot) -> None:
        now = {(u.name, i): oldest for u in snapshot.units for i, oldest in u.oldest_roots.items()}
        for place, known in list(self._slow.items()):
            if now.get(place) != known:
                del self._slow[place]
                about = {"unit": place[0], "sub_unit": place[1], "number": known[0]}
                self._span("slow root", known[1], snapshot.now, about)
        self._slow |= {place: oldest for place, oldest in now.items() if snapshot.now - oldest[1] >= SLOW}

    def _span(self, name: str, start: float, end: float, about: dict[str, Any]) -> None:
        if self._tracer is not None and self._snapshot is not None:
            attributes = {f"esault.{key}": value for key, value in about.items()}
            span = self._tracer.start_span(name, start_time=int(start * 1e9), attributes=attributes)
            span.end(int(end * 1e9))

    # sending -----------------------------------------------------------------------------------

    def _begin(self, snapshot: Snapshot) -> None:
        about: dict[str, Any] = {"service.instance.id": snapshot.run, "esault.topology": snapshot.topology}
        if not os.environ.get("OTEL_SERVICE_NAME") and "service.name" not in os.environ.get(
            "OTEL_RESOURCE_ATTRIBUTES", ""
        ):
            about["service.name"] = snapshot.topology
        self._resource = Resource.create(about)
        self._provider = TracerProvider(resource=self._resource, shutdown_on_exit=False)
        spans = OTLPSpanExporter(endpoint=self._url and f"{self._url}/v1/traces")
        self._provider.add_span_processor(BatchSpanProcessor(spans))
        self._tracer = self._provider.get_tracer("esault", VERSION)
        self._thread = threading.Thread(target=self._run, name="esault-otlp", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        exporter = OTLPMetricExporter(endpoint=self._url and f"{self._url}/v1/metrics")
        while not self._ended.wait(self._every):
            self._send(exporter, 10.0)
        self._send(exporter, LAST / 2)
        with contextlib.suppress(Exception):
            self._provider.force_flush(int(1000 * LAST / 2))
            self._provider.shutdown()
            exporter.shutdown()

    def _send(self, exporter: Any, within: float) -> None:
        snapshot = self._snapshot
        if snapshot is None:
            return
        try:
            data = metrics_data(snapshot, self._resource, self._began or time.time())
            ok = exporter.export(data, timeout_millis=1000 * within) is MetricExportResult.SUCCESS
        except Exception:
            ok = False
        if ok is self._failed:
            self._failed = not ok
            where = self._url or "OTEL_EXPORTER_OTLP_ENDPOINT"
            self._view.notice(
                f"OTLP: {where} " + ("takes metrics again" if ok else "takes no metrics; it is tried again")
            )


def metrics_data(snapshot: Snapshot, resource: Any, began: float) -> MetricsData:
    """Return all metrics of a run as OpenTelemetry has them; `began`: seconds since the epoch, from when it counts."""
    times: dict[str, Any] = {"start_time_unix_nano": int(began * 1e9), "time_unix_nano": int(snapshot.now * 1e9)}
    metrics = [_metric(each, times) for each in families(snapshot) if each.points]
    return MetricsData([ResourceMetrics(resource, [ScopeMetrics(_SCOPE, metrics, "")], "")])


def _metric(family: MetricFamily, times: dict[str, Any]) -> Metric:
    name = family.name.replace("esault_", "esault.", 1)
    if family.kind == "histogram":
        points = [
            HistogramDataPoint(
                labels,
                **times,
                count=sum(counts),
                sum=total,
                bucket_counts=counts,
                explicit_bounds=bounds,
                min=0.0,
                max=0.0,
            )
            for labels, (bounds, counts, total) in family.points
        ]
        data: Any = Histogram(points, AggregationTemporality.CUMULATIVE)
    else:
        numbers = [NumberDataPoint(labels, **times, value=value) for labels, value in family.points]
        data = (
            Gauge(numbers)
            if family.kind in ("gauge", "summary")
            else Sum(numbers, AggregationTemporality.CUMULATIVE, True)
        )
    return Metric(name, family.meaning, _UNITS.get(family.unit, f"{{{family.unit}}}" if family.unit else ""), data)
