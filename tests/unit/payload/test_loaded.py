from __future__ import annotations

import importlib
import sys
import threading
from decimal import Decimal

import pytest

from esault.payload.codec import Codec
from esault.payload.column import checked, is_column
from esault.payload.loaded import loaded
from esault.payload.packed_rows import Rows

#: a library that is half loaded when `GATE` is asked for
HALF = "half_of_a_library"


@pytest.fixture
def half(tmp_path, monkeypatch):
    """A library that a thread is at loading until the test lets it."""
    begun, gate = threading.Event(), threading.Event()
    monkeypatch.setattr(sys, "half_loaded", (begun, gate), raising=False)
    (tmp_path / f"{HALF}.py").write_text(
        "import sys\nbegun, gate = sys.half_loaded\nbegun.set()\nassert gate.wait(60)\nclass ndarray: pass\ngeneric = ndarray\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    thread = threading.Thread(target=importlib.import_module, args=(HALF,))
    thread.start()
    assert begun.wait(60)
    yield gate
    gate.set()
    thread.join()
    sys.modules.pop(HALF, None)


def test_what_a_thread_is_at_loading_is_not_loaded(half):
    assert loaded("json") is sys.modules["json"]
    assert loaded("no_such_library") is None
    assert HALF in sys.modules
    assert loaded(HALF) is None
    half.set()
    importlib.import_module(HALF)
    assert loaded(HALF) is sys.modules[HALF]


def test_rows_travel_while_a_thread_loads_the_library_of_other_values(half, monkeypatch):
    monkeypatch.setitem(sys.modules, "numpy", sys.modules[HALF])
    monkeypatch.setitem(sys.modules, "pyarrow", sys.modules[HALF])
    codec = Codec()
    rows = [Decimal("1.5"), "a", None]
    assert list(codec.unpack(codec.pack((0, Rows(rows))))[1]) == rows
    assert not is_column([1])
    assert checked(range(3), "keys") == [0, 1, 2]
