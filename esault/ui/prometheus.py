"""A run's metrics for Prometheus, read over HTTP, and whether it is alive and ready.

Without an address only this machine is answered: metrics carry what a topology does. `/healthz` and `/readyz` are for what starts
runs again and sends them work, such as Kubernetes.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from esault.control.report.summary import SCALED_TO_ZERO, Snapshot
from esault.counters import counted
from esault.errors import UsageError
from esault.runtime.session.request import LogView, View
from esault.ui.late_server import LateServer
from esault.ui.listen_address import is_loopback, listen_address
from esault.ui.metric_families import families

__all__ = ["PrometheusView", "served"]

#: seconds without a word of the driver after which a run is no longer called alive
SILENCE = 30.0


class PrometheusView:
    """Shows a run to Prometheus, and hands everything on to another view."""

    def __init__(self, address: str, view: View, clock: Callable[[], float] = time.monotonic) -> None:
        """`address` is "[ADDRESS:]PORT"; 0: any that is free. Raises UsageError, before anything has started."""
        host, port = listen_address("--metrics", address)
        try:
            import prometheus_client.core
        except ImportError:
            raise UsageError("--metrics needs prometheus-client: pip install 'esault[metrics]'") from None
        self._core: Any = prometheus_client.core
        self._view = view
        self._snapshot: Snapshot | None = None
        self._clock = clock
        self._heard = clock()
        registry = prometheus_client.CollectorRegistry()
        registry.register(self)
        self._metrics: Any = prometheus_client.make_wsgi_app(registry)
        self._server = LateServer("--metrics", host, port, self._answer, guarded=is_loopback(host))

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
        self._snapshot, self._heard = snapshot, self._clock()
        if self._server.start(self._view.notice):
            self._view.notice(f"metrics: {self._server.url}/metrics")
        self._view.update(snapshot)

    def close(self) -> None:
        """The run has ended."""
        self._server.close()

    # as an application -------------------------------------------------------------------------

    def _answer(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if path in ("", "/", "/metrics"):
            answer: Iterable[bytes] = self._metrics(environ, start_response)
            return answer
        asked = {"/healthz": self.trouble, "/readyz": self.not_ready}.get(path)
        if asked is None:  # a probe of a path that is not there must not be told that all is well
            start_response("404 Not Found", [("Content-Type", "text/plain; charset=utf-8")])
            return [b"there are /metrics, /healthz and /readyz\n"]
        why = asked()
        start_response("503 Service Unavailable" if why else "200 OK", [("Content-Type", "text/plain; charset=utf-8")])
        return [f"{why or 'ok'}\n".encode()]

    def trouble(self) -> str:
        """Return why the run is not alive; empty where it is."""
        silent = self._clock() - self._heard
        if silent > SILENCE:
            return f"the driver has said nothing for {silent:.0f} s"
        return self._snapshot.failure or "" if self._snapshot is not None else ""

    def not_ready(self) -> str:
        """Return why the run does not process tuples now; empty where it does."""
        snapshot = self._snapshot
        if self.trouble() or snapshot is None:
            return self.trouble() or "starting"
        if snapshot.draining:
            return "ending in order"
        if snapshot.unforked:
            return f"{counted(snapshot.unforked, 'sub-unit')} cannot be forked"
        return "" if snapshot.phase in ("running", SCALED_TO_ZERO) else snapshot.phase

    # as a collector ----------------------------------------------------------------------------

    def describe(self) -> list[Any]:
        """Nothing, so that registering does not collect."""
        return []

    def collect(self) -> Iterator[Any]:
        """Yield the metrics that Prometheus asks for, in its library's words; called in the server's thread."""
        snapshot = self._snapshot
        for each in families(snapshot) if snapshot is not None else ():
            # a user may have named a counter as Prometheus shows it
            name = (each.name.removesuffix("_total") or each.name) if each.kind == "counter" else each.name
            shown = self._core.Metric(name, each.meaning, each.kind)
            for labels, value in each.points:
                if each.kind == "histogram":
                    _add_histogram(shown, labels, *value)
                else:
                    shown.add_sample(name + ("_total" if each.kind == "counter" else ""), labels, value)
            yield shown


def _add_histogram(shown: Any, labels: dict[str, str], bounds: Any, counts: Any, total: float) -> None:
    below = 0
    for bound, count in zip((*(repr(each) for each in bounds), "+Inf"), counts):
        below += count
        shown.add_sample(f"{shown.name}_bucket", {**labels, "le": bound}, below)
    shown.add_sample(f"{shown.name}_count", labels, below)
    shown.add_sample(f"{shown.name}_sum", labels, total)


@contextlib.contextmanager
def served(address: str | None, view: View) -> Iterator[View]:
    """The view, with its metrics at this address; None: without."""
    if address is None:
        yield view
        return
    shown = PrometheusView(address, view)
    try:
        yield shown
    finally:
        shown.close()
