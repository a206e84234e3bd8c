"""Makes `elasticity_views` importable for the tests beside it, and has walks change in subscales, too."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(params=["at once", "in subscales"])
def subscales(request, monkeypatch):
    """The few keys of a walk move as they do there, and as many do: one after the other."""
    if request.param == "in subscales":
        monkeypatch.setattr("esault.control.units.rescale.SUBSCALE_KEYS", 1)
