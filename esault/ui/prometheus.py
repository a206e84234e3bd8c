"""A run's metrics for Prometheus, read over HTTP from this machine alone."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import Any, NamedTuple

from esault.control.report.summary import Snapshot, UnitSnapshot
from esault.errors import UsageError
from esault.runtime.session.session import View

__all__ = ["PrometheusView", "served"]

#: metrics carry what a topology does: they are not shown beyond this machine
HOST = "127.0.0.1"


class _Metric(NamedTuple):
    """One number of a unit, or of the run."""

    name: str
    help: str
    field: str
    #: it only grows
    counter: bool = True


_OF_UNITS = (
    _Metric("esault_tuples_in", "Tuples that a bolt has processed.", "tuples_in"),
    _Metric("esault_tuples_out", "Tuples that a unit has emitted.", "tuples_out"),
    _Metric("esault_errors", "Tuples whose processing failed and was survived, by on_error.", "errors"),
    _Metric("esault_dead_letters", "Of those, tuples that were kept as dead letters.", "dead_letters"),
    _Metric("esault_dropped", "Tuples that came when a bounded inbox was full.", "dropped"),
    _Metric("esault_late", "Tuples whose window had closed.", "late"),
    _Metric("esault_state_lost", "Elements whose state died with a process.", "state_lost"),
    _Metric("esault_busy_seconds", "Seconds in which sub-units were busy, added up.", "busy_seconds"),
    _Metric("esault_backlog", "Tuples that wait in inboxes.", "backlog", counter=False),
    _Metric("esault_sub_units", "Parallelism: sub-units that the unit has.", "sub_units", counter=False),
)
_OF_THE_RUN = (
    _Metric("esault_roots_emitted", "Batches that spouts have read.", "roots_emitted"),
    _Metric("esault_roots_acked", "Of those, batches of which all is processed and durable.", "roots_acked"),
    _Metric("esault_roots_replayed", "Batches that were emitted again.", "roots_replayed"),
    _Metric("esault_roots_open", "Batches that are under way.", "roots_open", counter=False),
    _Metric("esault_changes", "Changes of units' parallelism that have ended.", "changes"),
    _Metric("esault_deaths", "Processes that died and were replaced.", "deaths"),
    _Metric("esault_restores", "Times that all went back to a checkpoint.", "restores"),
    _Metric("esault_checkpoint", "Number of the newest complete checkpoint.", "checkpoint", counter=False),
    _Metric("esault_slots", "Places for sub-units.", "slots", counter=False),
    _Metric("esault_free_slots", "Places that are free.", "free_slots", counter=False),
    _Metric("esault_running_seconds", "Seconds since tuples began to flow.", "seconds", counter=False),
)


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
        self._server: Any = None
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
        if self._server is None:
            self._serve()
        self._view.update(snapshot)

    def _serve(self) -> None:
        # Not before the run's processes are there: they are forked, and take over neither threads nor this socket.
        registry = self._library.CollectorRegistry()
        registry.register(self)
        try:
            self._server, _ = self._library.start_http_server(self._port, HOST, registry)
        except OSError as error:
            self._server = False
            self._view.notice(
                f"there are no metrics: {HOST}:{self._port} was taken meanwhile ({error.strerror or error})"
            )
            return
        self._view.notice(f"metrics: http://{HOST}:{self._server.server_port}/metrics")

    def close(self) -> None:
        """The run has ended."""
        if self._server:
            self._server.shutdown()
            self._server.server_close()

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
        for metric in _OF_THE_RUN:
            family = self._family(metric, ["topology"])
            family.add_metric(run, getattr(snapshot, metric.field))
            yield family
        for metric in _OF_UNITS:
            family = self._family(metric, ["topology", "unit"])
            for unit in snapshot.units:
                family.add_metric([*run, unit.name], getattr(unit, metric.field))
            yield family
        yield self._latencies(snapshot)
        yield self._lags(snapshot)
        yield self._watermarks(snapshot)

    def _family(self, metric: _Metric, labels: list[str]) -> Any:
        kind = self._core.CounterMetricFamily if metric.counter else self._core.GaugeMetricFamily
        return kind(metric.name, metric.help, labels=labels)

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
