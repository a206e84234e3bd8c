"""OpenBLAS is told to spin briefly where the engine is what loads it, and nothing stays behind of that."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from esault.payload.blas_spin import short_spin

TIMEOUT, OLDER = "OPENBLAS_THREAD_TIMEOUT", "GOTO_THREAD_TIMEOUT"
#: says what stands in the environment when numpy is looked for, and at the end
LOADS = f"""
import importlib.abc, os, sys
class Looks(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "numpy":
            print(os.environ.get("{TIMEOUT}"))
sys.meta_path.insert(0, Looks())
{{}}
print(os.environ.get("{TIMEOUT}"), "numpy" in sys.modules)
"""


@pytest.fixture
def fresh(monkeypatch):
    """A process that has not loaded numpy."""
    for name in (TIMEOUT, OLDER):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delitem(sys.modules, "numpy", raising=False)


def test_within_it_is_brief_and_behind_it_nothing_is_left(fresh):
    with short_spin():
        assert os.environ[TIMEOUT] == "4"
    assert TIMEOUT not in os.environ


def test_nothing_is_left_of_it_where_the_load_fails(fresh):
    with pytest.raises(ImportError), short_spin():
        raise ImportError
    assert TIMEOUT not in os.environ


@pytest.mark.parametrize("name", [TIMEOUT, OLDER])
def test_what_the_user_says_stays(fresh, monkeypatch, name):
    monkeypatch.setenv(name, "20")
    before = dict(os.environ)
    with short_spin():
        assert dict(os.environ) == before
    assert dict(os.environ) == before


def test_where_numpy_is_loaded_nothing_is_said(fresh, monkeypatch):
    monkeypatch.setitem(sys.modules, "numpy", object())
    with short_spin():
        assert TIMEOUT not in os.environ


@pytest.mark.slow
@pytest.mark.parametrize(
    "load",
    [
        "from esault.sinks.landing.arrow import load; load()",
        "from esault.sources.arrow_columns import arrow; arrow('ParquetFiles')",
    ],
)
def test_tables_and_sources_of_arrow_load_it_so(load):
    pytest.importorskip("pyarrow")
    environment = {key: value for key, value in os.environ.items() if key not in (TIMEOUT, OLDER)}
    said = subprocess.run(
        [sys.executable, "-c", LOADS.format(load)], env=environment, capture_output=True, text=True, check=True
    )
    assert said.stdout.split() == ["4", "None", "True"]
