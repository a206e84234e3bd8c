"""Windows step by step, for cases of peers."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # tests here share how windows are run

from steps import Steps


@pytest.fixture(params=[False, True], ids=["stays", "moves"])
def steps(request):
    """Make `Steps` of windows, whose state stays, or goes to another owner all the time."""
    return lambda *args, **options: Steps(request.param, *args, **options)
