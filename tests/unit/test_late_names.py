"""Names that are loaded when they are asked for: once, with all that `dir` shows, and others refused as Python refuses them."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

from esault.late_names import PUBLIC, late_names


@pytest.fixture
def late(tmp_path, monkeypatch):
    """`__getattr__` and `__dir__` of a module whose names are in another that says when it is loaded."""
    (tmp_path / "heavy_for_test.py").write_text("class Reader:\n    pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "heavy_for_test", raising=False)
    namespace = {"__name__": "light", "here": 1}
    yield namespace, *late_names(namespace, {"Reader": "heavy_for_test"})
    sys.modules.pop("heavy_for_test", None)


def test_a_name_is_loaded_when_it_is_asked_for_and_kept(late):
    namespace, get, _ = late
    assert "heavy_for_test" not in sys.modules
    found = get("Reader")
    assert found is sys.modules["heavy_for_test"].Reader is namespace["Reader"]


def test_a_name_that_is_not_there_is_refused_with_the_modules_name(late):
    _, get, _ = late
    with pytest.raises(AttributeError, match="module 'light' has no attribute 'Raeder'"):
        get("Raeder")
    assert "heavy_for_test" not in sys.modules


def test_names_are_shown_before_they_are_loaded(late):
    _, _, names = late
    assert names() == ["Reader", "__name__", "here"]
    assert "heavy_for_test" not in sys.modules


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("from esault.sinks import Sink", "from esault import Sink"),
        ("from esault.sources import Spout", "from esault import Spout"),
        ("from esault import TextFiles", "from esault.sources import TextFiles"),
        ("from esault import KafkaSink", "from esault.sinks import KafkaSink"),
        ("from esault import TumblingWindow", "from esault.windows import TumblingWindow"),
        ("from esault import LocalRuntime", "from esault.testing import LocalRuntime"),
        ("from esault.sources import count", "from esault.aggregates import count"),
    ],
)
def test_a_name_that_another_public_module_has_is_refused_with_the_line_to_write(wrong, right):
    with pytest.raises(ImportError) as refused:
        exec(wrong, {})
    assert right in str(refused.value)
    exec(right, {})


def test_a_module_inside_a_package_is_imported_without_a_look_at_the_others():
    code = "import sys; from esault import connectors, lookups; assert not {'esault.testing', 'esault.sinks'} & set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_source_and_a_sink_come_without_their_neighbours():
    code = (
        "import sys; from esault.sources import Items; from esault.sinks import Collect; "
        "assert not {'esault.sources.cron', 'esault.sources.lines', 'esault.sinks.landing', 'esault.sinks.parquet'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_public_module_has_what_it_says():
    for place in PUBLIC:
        module = import_module(place)
        assert [name for name in module.__all__ if not hasattr(module, name)] == []
