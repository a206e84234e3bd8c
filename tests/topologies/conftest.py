"""What the tests of topologies share; `running` beside this file runs them."""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb
import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def sql():
    """A database in memory, for the batch answer on the same data; times in UTC."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection
