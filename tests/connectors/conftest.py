"""What tests of connectors share."""

from __future__ import annotations

import depth
import pytest

from esault.testing import sink_contract


@pytest.fixture(autouse=True)
def _killed_behind_few_steps(monkeypatch):
    """The contract of sinks kills a run behind what may leave something: where nothing is prepared, nothing is written."""
    if depth.PROFILE != "deep":
        monkeypatch.setattr(sink_contract, "_STEPS", ("prepare", "commit"))
