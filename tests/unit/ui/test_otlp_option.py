"""The option --otlp: what it refuses, and that nothing is made without it."""

from __future__ import annotations

import pytest

from esault.errors import UsageError
from esault.runtime.session.request import Quiet
from esault.ui.otlp_option import exported


@pytest.fixture(autouse=True)
def no_settings(monkeypatch):
    for name in ("", "_METRICS", "_TRACES"):
        monkeypatch.delenv(f"OTEL_EXPORTER_OTLP{name}_ENDPOINT", raising=False)
    monkeypatch.delenv("OTEL_SDK_DISABLED", raising=False)


def test_without_the_option_the_view_is_the_same():
    view = Quiet()
    with exported(None, view) as found:
        assert found is view


def test_what_is_switched_off_for_the_environment_is_off(monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_SDK_DISABLED", "TRUE")
    view = Quiet()
    with exported(None, view) as found:
        assert found is view


@pytest.mark.parametrize("url", ["", "127.0.0.1:4318", "grpc://h:4317", "file:///x", "HTTP"])
def test_what_is_no_url_of_http_is_refused(url):
    with pytest.raises(UsageError, match="--otlp"), exported(url, Quiet()):
        raise AssertionError("nothing may run")
