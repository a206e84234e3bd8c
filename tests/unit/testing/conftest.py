"""Makes `elasticity_views` importable for the tests beside it, and has walks change in subscales, too."""

import sys
from pathlib import Path

import pytest

from esault.control.units.subscales import SUBSCALE_KEYS

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(params=["at once", "in subscales"])
def subscales(request, monkeypatch):
    """The few keys of a walk move as they do there, and as many do: in five subscales."""
    if request.param == "in subscales":
        monkeypatch.setattr("esault.control.units.subscales.keys_given", lambda unit, moves: 5 * SUBSCALE_KEYS)
