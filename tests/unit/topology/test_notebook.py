"""Cells as a module: what is needed and nothing else, in an order in which it can be imported."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.errors import LocateError
from esault.topology import notebook
from esault.topology.notebook import module_text


def run(cells):
    """As a kernel does: each cell in the same names."""
    names: dict = {"__name__": "__main__"}
    for cell in cells:
        exec(compile(cell, "cell", "exec"), names)
    return names


def made(cells, function="f"):
    """The names of the module that is made of these cells, and its text."""
    text = module_text(function, cells, run(cells))
    names: dict = {"__name__": "module"}
    exec(compile(text, "module", "exec"), names)
    return names, text


def test_functions_classes_imports_and_data_come_along_and_nothing_else():
    cells = [
        "import math\nfrom collections import deque as queue",
        "RATE, NAMES = 3, ['a', 'b']\nunused = open",
        "class Base:\n    size = RATE\n\nclass Bolt(Base):\n    def go(self):\n        return queue([math.pi, helper()])",
        "def helper():\n    return NAMES",
        "def f():\n    return Bolt().go()",
        "print('never again')",
    ]
    names, text = made(cells)
    assert list(names["f"]())[1] == ["a", "b"]
    assert "unused" not in text and "never again" not in text
    assert text.index("class Base") < text.index("class Bolt")


def test_the_newest_cell_counts_and_data_is_as_it_is_now():
    names, _ = made(["N = 1", "def f():\n    return 'old'", "def f():\n    return N", "N = 5", "N += 2"])
    assert names["f"]() == 7


def test_a_name_that_only_a_function_has_is_not_taken_for_one_of_a_cell():
    cells = ["for rows in [[1]]:\n    pass", "def f():\n    rows = 3\n    return rows"]
    assert made(cells)[0]["f"]() == 3


def test_what_is_no_plain_data_is_assigned_again():
    cells = ["import re\nPATTERN = re.compile('a+')", "def f():\n    return PATTERN.findall('caat')"]
    names, text = made(cells)
    assert names["f"]() == ["aa"] and "re.compile('a+')" in text


def test_what_a_statement_has_made_is_refused_by_name_with_the_remedy():
    cells = ["with open('/dev/null') as file:\n    pass", "def f():\n    return file"]
    with pytest.raises(LocateError, match=r"f uses file, a TextIOWrapper .* Make it in the topology function"):
        module_text("f", cells, run(cells))


def test_functions_that_call_each_other_decorators_and_future_imports():
    cells = [
        "from __future__ import annotations",
        "import functools\ndef twice(g):\n    @functools.wraps(g)\n    def h(*a):\n        return 2 * g(*a)\n    return h",
        "def f(n: Missing = 3):\n    return even(n)",
        "@twice\ndef even(n):\n    return 1 if n <= 0 else f(n - 1)",
    ]
    names, text = made(cells)
    assert names["f"](2) == 8
    assert text.split("\n\n")[1].strip().startswith("from __future__")


@pytest.mark.parametrize("strange", ["\x0c", "\x1c", "\x85", "\u2028"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_text_may_hold_what_only_others_take_for_the_end_of_a_line(strange, end):
    cell = f"def g():\n    return 'x{strange}y'\n\ndef f():\n    return g()\n".replace("\n", end)
    names, _ = made([cell])
    assert names["f"]() == f"x{strange}y"


def test_the_file_is_utf_8_in_any_locale(tmp_path):
    program = "from esault.topology.notebook import write_module\nwrite_module('f', ['def f():\\n    return \"gr\\u00f6\"'], {})"
    options = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"}
    for _ in range(2):  # the second one compares
        subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env={**os.environ, **options}, check=True)
    assert "grö" in (tmp_path / ".esault" / "notebook" / "f.py").read_text(encoding="utf-8")


def test_a_cell_that_could_not_be_run_has_defined_nothing():
    text = module_text("f", ["def f(:", "def f():\n    return 1"], {})
    assert "return 1" in text and "(:" not in text


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.binary(),
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(plain)
def test_plain_data_is_what_it_was(value):
    text = module_text("f", ["X = 1", "def f():\n    return X"], {"X": value})
    names: dict = {}
    exec(text, names)
    assert repr(names["f"]()) == repr(value)


@pytest.mark.parametrize("value", [float("nan"), [float("inf")], list(range(200_000)), {"a": object()}])
def test_what_is_no_plain_data_or_much_of_it_is_made_by_its_statement_again(value):
    assert not notebook._is_plain(value)
    assert "X = make()" in module_text(
        "f", ["def make():\n    return 1", "X = make()", "def f():\n    return X"], {"X": value}
    )


def test_a_function_of_a_cell_gets_a_file_that_is_written_where_it_has_changed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sources = ["def f():\n    return 1"]
    path = notebook.write_module("f", sources, run(sources))
    assert (path.name, path.is_relative_to(tmp_path)) == ("f.py", True)
    os.utime(path, (0, 0))
    notebook.write_module("f", sources, run(sources))
    assert path.stat().st_mtime == 0, "what has not changed stays as it is"
    sources = ["def f():\n    return 2"]
    notebook.write_module("f", sources, run(sources))
    assert "return 2" in path.read_text()
    assert [each.name for each in path.parent.iterdir()] == ["f.py"]


def test_where_no_file_can_be_written_it_is_said(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / notebook.FOLDER).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / notebook.FOLDER).write_text("a file")
    sources = ["def f():\n    return 1"]
    with pytest.raises(LocateError, match="f.py, which the processes of a run import, cannot be written"):
        notebook.write_module("f", sources, run(sources))
