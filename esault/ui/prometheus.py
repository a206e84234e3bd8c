"""A run's metrics for Prometheus, read over HTTP from this machine alone."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from esault.control.report.summary import Snapshot, UnitSnapshot
from esault.counters import Counter, declared
from esault.errors import UsageError
from esault.runtime.session.request import View

if TYPE_CHECKING:
    from esault.ui.metrics_server import MetricsServer

__all__ = ["PrometheusView", "served"]

#: metrics carry what a topology does: they are not shown beyond this machine
HOST = "127.0.0.1"


class PrometheusView:
    """Shows a run to Prometheus, and hands everything on to another view."""

    def __init__(self, port: int, view: View) -> None:
        """`port` on the loopback; 0: any that is free. Raises UsageError, before anything has started."""
        try:
            import prometheus_client.core
        except ImportError:
            raise UsageError("--metrics needs prometheus-client: pip install 'esault[metrics]'") from None
        self._library = prometheus_client
        self._core: Any = prometheus_client.core
        self._view = view
        self._port = port
        self._snapshot: Snapshot | None = None
        self._server: MetricsServer | None = None
        #: the port was taken by another program
        self._gone = False
        try:
            with socket.create_server((HOST, port)):
                pass
        except OSError as error:
            raise UsageError(
                f"--metrics {port}: {HOST}:{port} cannot be listened on ({error.strerror or error}); choose another port, or 0 "
                "for any that is free"
            ) from None

    # as a view ---------------------------------------------------------------------------------

    def line(self, mark: str, text: str) -> None:
        """A line that a process printed."""
        self._view.line(mark, text)

    def notice(self, text: str) -> None:
        """Something the user should know."""
        self._view.notice(text)

    def update(self, snapshot: Snapshot) -> None:
        """The run as it is."""
        self._snapshot = snapshot
        if self._server is None and not self._gone:
            self._serve()
        self._view.update(snapshot)

    def _serve(self) -> None:
        # Not before the run's processes are there: they are forked, and take over neither threads nor this socket.
        registry = self._library.CollectorRegistry()
        registry.register(self)
        try:
            from esault.ui.metrics_server import MetricsServer  # with it comes http, which every run would load

            self._server = MetricsServer(HOST, self._port, self._library.make_wsgi_app(registry))
        except OSError as error:
            self._gone = True
            self._view.notice(
                f"there are no metrics: {HOST}:{self._port} was taken meanwhile ({error.strerror or error})"
            )
            return
        self._server.start()
        self._view.notice(f"metrics: http://{HOST}:{self._server.server_port}/metrics")

    def close(self) -> None:
        """The run has ended."""
        if self._server:
            self._server.close()

    # as a collector ----------------------------------------------------------------------------

    def describe(self) -> list[Any]:
        """Nothing, so that registering does not collect."""
        return []

    def collect(self) -> Iterator[Any]:
        """Yield the metrics that Prometheus asks for, in its library's words; called in the server's thread."""
        snapshot = self._snapshot
        if snapshot is None:
            return
        run = [snapshot.topology]
        for name, counter in declared(Snapshot).items():
            family = self._family(name, counter, ["topology"])
            family.add_metric(run, getattr(snapshot, name))
            yield family
        for name, counter in declared(UnitSnapshot).items():
            family = self._family(name, counter, ["topology", "unit"])
            for unit in snapshot.units:
                family.add_metric([*run, unit.name], getattr(unit, name))
            yield family
        yield self._latencies(snapshot)
        yield self._lags(snapshot)
        yield self._watermarks(snapshot)

    def _family(self, name: str, counter: Counter, labels: list[str]) -> Any:
        kind = self._core.GaugeMetricFamily if counter.gauge else self._core.CounterMetricFamily
        return kind(counter.metric or f"esault_{name}", counter.meaning, labels=labels)

    def _latencies(self, snapshot: Snapshot) -> Any:
        family = self._core.GaugeMetricFamily(
            "esault_latency_seconds",
            "Of a bolt's tuples, from their sending to the end of their processing, over the whole run.",
            labels=["topology", "unit", "quantile"],
        )
        for unit in snapshot.units:
            if unit.kind == "bolt":
                for quantile, ms in (("0.5", unit.p50_ms), ("0.99", unit.p99_ms)):
                    family.add_metric([snapshot.topology, unit.name, quantile], ms / 1000)
        return family

    def _watermarks(self, snapshot: Snapshot) -> Any:
        family = self._core.GaugeMetricFamily(
            "esault_watermark_seconds",
            "Event time up to which a unit has seen to all, seconds since the epoch, where there is one.",
            labels=["topology", "unit"],
        )
        for unit in snapshot.units:
            if unit.watermark is not None:
                family.add_metric([snapshot.topology, unit.name], unit.watermark)
        return family

    def _lags(self, snapshot: Snapshot) -> Any:
        family = self._core.GaugeMetricFamily(
            "esault_lag",
            "What a source still has to be read, in its own measure, where it knows.",
            labels=["topology", "unit"],
        )
        for unit in snapshot.units:
            left = _left(unit)
            if left is not None:
                family.add_metric([snapshot.topology, unit.name], left)
        return family


def _left(unit: UnitSnapshot) -> float | None:
    return None if unit.progress is None else max(0.0, unit.progress[1] - unit.progress[0])


@contextlib.contextmanager
def served(port: int | None, view: View) -> Iterator[View]:
    """The view, with its metrics on this port; None: without."""
    if port is None:
        yield view
        return
    shown = PrometheusView(port, view)
    try:
        yield shown
    finally:
        shown.close()
