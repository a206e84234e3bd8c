"""The benches are no installed package: they run in the checkout."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = str(Path(__file__).parents[3])


@pytest.fixture(autouse=True)
def _checkout(monkeypatch):
    monkeypatch.setattr(sys, "path", [ROOT, *sys.path])
