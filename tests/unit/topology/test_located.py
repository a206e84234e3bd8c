from __future__ import annotations

import os
import pickle
import re
import sys
import textwrap
import threading
import traceback
from types import SimpleNamespace

import pytest

from esault.errors import LocateError, TopologyError
from esault.topology.builder import Topology
from esault.topology.locate import locate
from esault.topology.located import Located, loading

HEAD = """
from __future__ import annotations
from esault import Bolt, Sink, Spout, Topology, shuffle

class Numbers(Spout):
    def read(self, limit):
        return [(1, 1)]

class Rows(Sink):
    def write(self, rows):
        pass
"""
GOOD = (
    HEAD
    + """
class Same(Bolt):
    def process(self, key, value):
        self.emit(key, value)

def topology(name: str = "numbers", parallelism: int = 1) -> Topology:
    t = Topology(name)
    local = type("Local", (Same,), {})
    t.spout("lines", Numbers()).bolt("x", lambda: local(), shuffle(), parallelism=parallelism).sink("rows", Rows())
    return t

def reports(tables):
    return {"all": tables["rows"]}
"""
)


@pytest.fixture(autouse=True)
def _own_imports(monkeypatch):
    """What a test imports and puts on the path is gone afterwards."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Write a file in the current folder; returns what locate makes of it."""
    monkeypatch.chdir(tmp_path)

    def write(text, name="numbers.py", function="topology"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(textwrap.dedent(text))
        return locate(f"{name}:{function}")

    return write


def refused(said):
    return pytest.raises(LocateError, match=re.escape(said))


def test_a_topology_is_built_with_parameters(file):
    plan = file(GOOD).build({"name": "mine", "parallelism": 3}).plan()
    assert plan.name == "mine"
    assert plan.units["x"].parallelism == 3


def test_another_process_builds_the_same_from_plain_values(file):
    located = file(GOOD)
    copy = pickle.loads(pickle.dumps(located))
    assert copy == located
    assert all(value is None or type(value) is str for value in vars(located).values())
    assert list(copy.build().plan().units) == ["lines", "x"]


def test_each_call_builds_a_topology_of_its_own_from_one_module(file):
    located = file(GOOD)
    assert located.build() is not located.build()
    assert located.load_module() is located.load_module()


def test_the_file_is_never_main(file):
    located = file(GOOD + "\nif __name__ == '__main__':\n    raise AssertionError('run as a script')\n")
    module = located.load_module()
    assert module.__name__.startswith("esault_topology_numbers_")
    assert module.__file__ == located.path
    assert sys.modules[module.__name__] is module


def test_the_module_has_what_else_the_file_says(file):
    assert file(GOOD).load_module().reports({"rows": 1}) == {"all": 1}


def test_dataclasses_with_texts_as_annotations_work(file):
    located = file(
        GOOD.replace(
            "class Same(Bolt):",
            "from dataclasses import dataclass\n\n@dataclass\nclass Same(Bolt):\n    total: int = 0\n",
        )
    )
    assert located.build().plan()


def test_a_changed_file_is_imported_again(file):
    located = file(GOOD)
    assert located.build().name == "numbers"
    file(GOOD.replace('"numbers"', '"different"'))
    assert located.build().name == "different"


def test_a_file_that_changes_within_a_moment_and_not_in_size_is_imported_again(file):
    located = file(GOOD)
    first = located.build().name
    file(GOOD.replace('"numbers"', '"letters"'))
    stat = os.stat(located.path)
    os.utime(located.path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    assert (first, located.build().name) == ("numbers", "letters")


def test_no_bytecode_is_left_in_the_users_folder(file, tmp_path):
    file(GOOD).build()
    assert [path.name for path in tmp_path.iterdir()] == ["numbers.py"]


def test_the_folder_of_the_file_is_on_the_path(file, tmp_path):
    located = file(GOOD.replace('"numbers"', "__import__('beside_the_file').NAME"), "sub/numbers.py")
    (tmp_path / "sub" / "beside_the_file.py").write_text("NAME = 'beside'")
    assert located.build().name == "beside"
    assert sys.path[0] == str(tmp_path / "sub")
    located.build()
    assert sys.path.count(str(tmp_path / "sub")) == 1


def test_two_files_of_one_name_are_two_modules(file):
    one = file(GOOD, "a/numbers.py")
    two = file(GOOD.replace('"numbers"', '"other"'), "b/numbers.py")
    assert (one.build().name, two.build().name, one.build().name) == ("numbers", "other", "numbers")


def test_a_module_in_a_package_is_built(file):
    file("", "esault_test_package/__init__.py")
    file("NAME = 'relative'", "esault_test_package/names.py")
    text = GOOD.replace('"numbers"', "NAME").replace("class Same", "from .names import NAME\n\nclass Same")
    file(text, "esault_test_package/numbers.py")
    located = locate("esault_test_package.numbers:topology")
    assert located.build().name == "relative"
    assert str(located) == "esault_test_package.numbers:topology"


def test_a_module_that_is_not_there_is_refused(file, tmp_path):
    file("", "esault_test_package/__init__.py")
    with refused(f"there is no module 'esault_test_package.nope' (looked in {tmp_path} and on the Python path)"):
        locate("esault_test_package.nope:topology").build()
    with refused("there is no module 'esault_test_nope'"):
        locate("esault_test_nope.numbers").build()


def test_a_function_that_is_named_as_a_module_is_told_how(file):
    file(GOOD, "esault_test_package/flow.py")
    with refused("topology is a function of esault_test_package.flow: write esault_test_package.flow:topology"):
        locate("esault_test_package.flow.topology").build()


def test_a_module_that_fails_to_import_another_says_which(file):
    file("import esault_test_nope", "esault_test_importer.py")
    said = "esault_test_importer cannot be imported: ModuleNotFoundError: No module named 'esault_test_nope'"
    with refused(said) as error:
        locate("esault_test_importer:topology").build()
    assert isinstance(error.value.__cause__, ModuleNotFoundError)


@pytest.mark.parametrize(
    ("text", "marks", "named"),
    [
        ("from .models import x", ["shop/__init__.py", "shop/web/__init__.py"], "shop.web.flow"),
        ("from .models import x", [], "web.flow, in {0}/shop"),
        ("from shop.web.models import x", [], "shop.web.flow"),
        ("from web.models import x", [], "web.flow, in {0}/shop"),
        ("import esault_test_nope", ["shop/__init__.py"], None),
        ("from .models import y", ["shop/models.py"], "web.flow, in {0}/shop"),
    ],
)
def test_a_file_of_a_package_is_to_be_named_as_a_module(file, tmp_path, monkeypatch, text, marks, named):
    (tmp_path / "shop" / "web").mkdir(parents=True)
    for mark in marks:
        file("", mark)
    file("x = 1", "shop/web/models.py")
    file(text, "shop/web/flow.py")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LocateError) as error:
        locate("shop/web/flow.py").build()
    _, names_it, remedy = str(error.value).partition(": name it as one, ")
    assert (remedy if names_it else None) == (named and named.format(tmp_path))


@pytest.mark.parametrize("lies", ["common/events.py", "common.py"])
def test_a_file_that_imports_what_lies_above_its_folder_is_to_be_named_as_a_module(file, tmp_path, monkeypatch, lies):
    file("x = 1", lies)
    file("from common.events import x" if "/" in lies else "import common", "web/flow.py")
    monkeypatch.chdir(tmp_path)
    with refused(f". common lies in {tmp_path}: name the file as a module, web.flow") as error:
        locate("web/flow.py").build()
    assert str(error.value).endswith("web.flow")


def test_a_file_that_has_gone_is_refused(file):
    located = file(GOOD)
    os.remove(located.path)
    with refused(f"numbers.py cannot be read: No such file or directory: {located.path}"):
        located.build()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import os\nx = 1 / 0\n", "numbers.py cannot be imported: ZeroDivisionError: division by zero (line 2 of n"),
        ("x = (\n", "numbers.py cannot be imported: SyntaxError: '(' was never closed (numbers.py, line 1)"),
        ("import esault_test_nope", "numbers.py cannot be imported: ModuleNotFoundError: No module named 'esault_test"),
        ("import sys\nsys.exit('no')", "numbers.py cannot be imported: it ended the process by sys.exit('no') (line 2"),
    ],
)
def test_a_file_that_cannot_be_imported_is_refused_with_the_reason(file, text, said):
    located = file(text)
    before = set(sys.modules)
    with refused(said) as error:
        located.build()
    assert error.value.__cause__ is not None
    assert not [name for name in set(sys.modules) - before if name.startswith("esault_topology_")]
    assert loading() is None


def test_what_the_file_raised_is_shown_from_its_own_line_on(file):
    with pytest.raises(LocateError) as error:
        file("def f():\n    raise ValueError('mine')\nf()\n").build()
    shown = traceback.extract_tb(error.value.__cause__.__traceback__)
    assert [(frame.name, frame.line) for frame in shown] == [("<module>", "f()"), ("f", "raise ValueError('mine')")]


def test_a_function_that_fails_keeps_its_traceback(file):
    said = "numbers.py:topology failed: KeyError: 'path' (line 2 of numbers.py)"
    with refused(said) as error:
        file("def topology():\n    return {}['path']\n").build()
    assert isinstance(error.value.__cause__, KeyError)
    (frame,) = traceback.extract_tb(error.value.__cause__.__traceback__)
    assert (frame.name, frame.lineno) == ("topology", 2)


def test_a_mistake_in_the_topology_is_told_as_it_is(file):
    with pytest.raises(TopologyError, match="unit 'lines': a spout is passed as an object") as error:
        file(HEAD + "def topology():\n    Topology('x').spout('lines', Numbers)\n").build()
    assert type(error.value) is TopologyError


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "def topology(): pass",
            "numbers.py:topology returned None (NoneType), and must return a Topology; is `return t`",
        ),
        ("def topology(): return 5", "numbers.py:topology returned 5 (int), and must return a Topology"),
        ("async def topology(): pass", "(coroutine), and must return a Topology"),
        ("topology = 5", "numbers.py:topology: 'topology' is 5, not a function that returns a Topology"),
        ("class topology: pass", "'topology' is <class 'esault_topology_numbers_"),
        (
            "from esault import Topology\ntopology = Topology('x')",
            "'topology' is a Topology; it must be a function that returns one, since each process builds its own",
        ),
    ],
)
def test_what_is_no_topology_function_is_refused(file, text, said):
    with refused(said):
        file(text).build()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "",
            "numbers.py has no function 'topology'; it defines no public function: write `def topology() -> Topology:`",
        ),
        (
            "from os.path import join\ndef sales(): ...\ndef _hidden(): ...\ndef helper(): ...",
            "numbers.py has no function 'topology'; if one of sales, helper returns a Topology, write numbers.py:NAME",
        ),
        (
            "from __future__ import annotations\nfrom esault import Topology\n"
            "def helper(): ...\ndef sales() -> Topology: ...\ndef totals() -> Topology: ...",
            "numbers.py has no function 'topology'; it has sales, totals: write numbers.py:sales",
        ),
    ],
)
def test_a_missing_function_is_answered_with_those_there_are(file, text, said):
    with refused(said):
        file(text).build()


def test_a_package_that_has_none_is_answered_with_its_modules(tmp_path, monkeypatch):
    (tmp_path / "soap_shop").mkdir()
    for name in ("__init__", "app", "steps"):
        (tmp_path / "soap_shop" / f"{name}.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    with refused("it is a package: name the module of it that has one: soap_shop.app, soap_shop.steps"):
        Located("topology", str(tmp_path), str(tmp_path), module="soap_shop").build()


def test_parameters_are_checked_before_the_function_is_called(file):
    located = file(GOOD)
    assert [str(p) for p in located.parameters()] == ["name: str = numbers", "parallelism: int = 1"]
    with refused(
        "numbers.py:topology: there is no parameter 'nam'; did you mean 'name'? Parameters: name: str = numbers"
    ):
        located.build({"nam": "x"})
    with refused("numbers.py:topology: these parameters have no default and must be given: n=INT"):
        file("def topology(n: int): ...").build()


def test_the_file_that_is_being_imported_is_known(file):
    module = file("from esault.topology.located import loading\nSEEN = loading()").load_module()
    assert module.SEEN == "numbers.py"
    assert loading() is None


def test_two_threads_import_one_file_in_turn_and_do_not_see_each_other_as_importing(file, monkeypatch):
    begun, asked, seen, functions = threading.Event(), threading.Event(), [], []
    monkeypatch.setitem(sys.modules, "turns", SimpleNamespace(begun=begun, asked=asked))
    # The body waits until the other thread has asked, which it may do while this file is being imported.
    located = file("import turns\nturns.begun.set(); assert turns.asked.wait(10)\ndef topology(): ...\n")

    def load():
        functions.append(located.load_function())

    first, second = threading.Thread(target=load), threading.Thread(target=load)

    def ask():
        assert begun.wait(10)
        seen.append(loading())
        second.start()
        asked.set()

    asking = threading.Thread(target=ask)
    first.start()
    asking.start()
    for thread in (asking, first, second):
        thread.join(20)
    assert seen == [None]
    assert len(functions) == 2 and functions[0] is functions[1]


def test_a_file_elsewhere_is_named_by_its_whole_path(file):
    located = file(GOOD)
    assert str(located) == "numbers.py:topology"
    assert str(Located("f", "/a", "/b", path="/a/x.py")) == "/a/x.py:f"


def test_what_is_built_is_a_topology(file):
    assert isinstance(file(GOOD).build(), Topology)
