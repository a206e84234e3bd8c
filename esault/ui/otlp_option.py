"""The option `--otlp` of a run: nothing of OpenTelemetry is loaded without it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from esault.errors import UsageError
from esault.runtime.session.request import View

__all__ = ["exported"]

#: where OpenTelemetry's own settings name a receiver
_ENDPOINTS = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
)


@contextlib.contextmanager
def exported(url: str | None, view: View) -> Iterator[View]:
    """The view, with its metrics and spans sent to `url`, or where the environment says; neither: without. Raises UsageError."""
    said = next((name for name in _ENDPOINTS if os.environ.get(name)), None)
    if url is None and (said is None or os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true"):
        yield view
        return
    if url is not None and not url.startswith(("http://", "https://")):
        raise UsageError(
            f"--otlp {url!r}: write the URL of a receiver of OTLP over HTTP, such as http://127.0.0.1:4318"
        )
    try:
        from esault.ui.otlp import OtlpView
    except ImportError:
        missing = "needs OpenTelemetry: pip install 'esault[otlp]'"
        if url is not None:
            raise UsageError(f"--otlp {missing}") from None
        view.notice(f"nothing is sent to where {said} says: that {missing}")
        yield view
        return
    made = OtlpView(url, view)
    try:
        yield made
    finally:
        made.close()
