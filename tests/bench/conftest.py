"""The benches are no installed package: they run in the checkout."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

ROOT = str(Path(__file__).parents[2])
#: for test modules that import benches at their top
sys.path.append(ROOT)


@pytest.fixture(autouse=True)
def _checkout(monkeypatch):
    monkeypatch.setattr(sys, "path", [ROOT, *sys.path])


@pytest.fixture(autouse=True)
def _young_java(monkeypatch):
    """A JVM that lives for seconds is not worth its best compiler, and what is measured here decides nothing."""
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


@pytest.fixture(autouse=True)
def _signals():
    """A bench takes signals into its own hands."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, before):
        signal.signal(number, handler)
