"""What runs on actors cannot do yet is refused before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from esault.errors import UsageError
from esault.messages.settings import Settings
from esault.runtime.session import Session
from esault.topology.locate import locate

FLOWS = Path(__file__).parents[1] / "acceptance" / "flows.py"


def test_checkpoints_on_actors_are_refused_as_yet():
    with pytest.raises(UsageError, match="LocalRuntime only as yet"):
        Session(locate(f"{FLOWS}:endless"), {"name": "endless"}, settings=Settings(delivery="eo"))
