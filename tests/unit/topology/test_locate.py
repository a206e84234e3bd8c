from __future__ import annotations

import functools
import importlib
import os
import re
import subprocess
import sys
import textwrap
import types

import pytest

from esault.errors import LocateError
from esault.topology.builder import Topology
from esault.topology.locate import Located, locate, locate_function


def topology(name: str = "here") -> Topology:
    return Topology(name)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def refused(said):
    return pytest.raises(LocateError, match=re.escape(said))


@pytest.mark.parametrize(
    ("spec", "function"), [("a/count.py", "topology"), ("a/count.py:other", "other"), ("./a/count.py", "topology")]
)
def test_a_file_is_located_without_being_imported(here, spec, function):
    (here / "a").mkdir()
    (here / "a" / "count.py").write_text("raise AssertionError('imported')")
    located = locate(spec)
    path = str(here / "a" / "count.py")
    assert located == Located(function, str(here / "a"), str(here), path=path)
    assert str(located) == f"{os.path.join('a', 'count.py')}:{function}"


def test_a_colon_in_a_folders_name_is_no_function(here):
    (here / "a:b").mkdir()
    (here / "a:b" / "count.py").write_text("")
    located = locate("a:b/count.py")
    assert (located.path, located.function) == (str(here / "a:b" / "count.py"), "topology")
    assert locate("a:b/count.py:f").function == "f"


def test_a_module_is_located_by_its_dotted_name(here):
    assert locate("shop.topologies:sales") == Located("sales", str(here), str(here), module="shop.topologies")
    assert locate("shop") == Located("topology", str(here), str(here), module="shop")


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("nope.py", "there is no file nope.py (looked in {here})"),
        ("cuont.py", "there is no file cuont.py (looked in {here}); did you mean count.py?"),
        ("nowhere/count.py", "there is no file nowhere/count.py (looked in {here}/nowhere); the folder is not there"),
        (
            "notes.txt",
            "notes.txt is no Python file: its name does not end in .py; a topology is named path.py, path.py:",
        ),
        ("./count", "./count is no topology file; did you mean ./count.py?"),
        ("folder.py", "folder.py is a folder"),
        ("count.py:", "'count.py:': '' behind the colon is no function's name"),
        ("count.py:a-b", "'a-b' behind the colon is no function's name"),
        (":topology", "':topology' names no file"),
        ("", "'' names no file"),
        ("__main__:topology", "name the file itself"),
        ("my-topology", "my-topology is no Python file"),
    ],
)
def test_what_names_no_topology_is_refused_with_a_hint(here, spec, said):
    (here / "count.py").write_text("")
    (here / "notes.txt").write_text("")
    (here / "folder.py").mkdir()
    with refused(said.format(here=here)):
        locate(spec)


# Functions ------------------------------------------------------------------------------------------------------------


def test_a_function_of_a_module_on_the_path_is_located_by_name(here):
    (here / "esault_test_shop").mkdir()
    (here / "esault_test_shop" / "__init__.py").write_text("")
    (here / "esault_test_shop" / "sales.py").write_text(
        "from esault import Topology\ndef topology(): return Topology('sales')"
    )
    sys.path.insert(0, str(here))
    module = importlib.import_module("esault_test_shop.sales")
    located = locate_function(module.topology)
    assert located == Located("topology", str(here), str(here), module="esault_test_shop.sales")
    assert located.build().name == "sales"


def test_a_function_of_a_module_that_is_not_on_the_path_is_located_by_its_file(monkeypatch):
    # pytest's importlib mode gives modules names that other processes do not find.
    monkeypatch.setattr(
        sys, "path", [p for p in sys.path if p and not __file__.startswith(os.path.abspath(p) + os.sep)]
    )
    located = locate_function(topology)
    assert located == Located("topology", os.path.dirname(__file__), os.getcwd(), path=__file__)
    assert located.build({"name": "again"}).name == "again"


@pytest.mark.parametrize("module", ["esault_test_hooked.flow", "esault_test_hooked"])
def test_a_function_of_a_package_that_a_hook_finds_is_located_by_name(here, module):
    """`pip install -e` of some packages puts no folder on the path: a finder knows where they are."""
    package = here / "src" / "esault_test_hooked"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "names.py").write_text("NAME = 'hooked'")
    body = "from esault import Topology\nfrom .names import NAME\ndef topology(): return Topology(NAME)\n"
    (package / "flow.py").write_text(body)
    if module == "esault_test_hooked":
        (package / "__init__.py").write_text(body)
    sys.path.insert(0, str(package.parent))
    function = importlib.import_module(module).topology
    sys.path.remove(str(package.parent))
    located = locate_function(function)
    assert located == Located("topology", str(package.parent), str(here), module=module)
    assert located.build().name == "hooked"


def test_a_decorated_function_is_located(here):
    (here / "esault_test_deco.py").write_text(
        textwrap.dedent("""
            import functools
            from esault import Topology

            def loud(function):
                @functools.wraps(function)
                def wrapper(*args, **kwargs):
                    return function(*args, **kwargs)
                return wrapper

            @loud
            def topology(name: str = "loud"):
                return Topology(name)
        """)
    )
    located = locate_function(locate("esault_test_deco.py").load_function())
    assert located.build({"name": "x"}).name == "x"
    assert [str(p) for p in located.parameters()] == ["name: str = loud"]


def test_what_other_processes_cannot_find_is_refused():
    def inner():
        return Topology("x")

    with refused("inner stands inside a function or a class, where other processes do not find it; move it to the top"):
        locate_function(inner)
    with refused("a lambda has no name by which other processes could find it; write a def"):
        locate_function(lambda: Topology("x"))
    with refused("is no function; pass the function itself, and its arguments as params={...}"):
        locate_function(functools.partial(topology, name="x"))
    with refused("pass the function that returns the topology, without calling it: run(topology)"):
        locate_function(topology())
    with refused("is no function; pass the function itself"):
        locate_function(Topology)
    with refused("'count.py' is no function; pass the function itself"):
        locate_function("count.py")


def test_a_function_that_its_file_calls_otherwise_is_refused(monkeypatch):
    passed = topology
    monkeypatch.setitem(globals(), "topology", lambda: None)
    with refused(f"{__file__} has another 'topology' at its top level than the one that was passed"):
        locate_function(passed)


@pytest.mark.parametrize("filename", ["<stdin>", "/tmp/ipykernel_1/12345.py"])
def test_a_function_of_a_prompt_is_refused_with_what_to_do(filename):
    namespace = {"__name__": "__main__", "Topology": Topology}
    exec(compile("def topology():\n    return Topology('x')", filename, "exec"), namespace)
    with pytest.raises(LocateError) as error:
        locate_function(namespace["topology"])
    assert "topology was not read from a file" in str(error.value)
    assert 'run(topology, engine="local")' in str(error.value)
    assert "save the function in a file" in str(error.value)


def script(folder, text, *command):
    """What a Python process says that runs `text`; `command` stands for the way it is started."""
    (folder / "count.py").write_text(textwrap.dedent(text))
    path = os.pathsep.join([os.getcwd(), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
    )
    return done.stdout.strip() or done.stderr


SCRIPT = """
from esault import Topology
from esault.topology.locate import locate_function

def topology():
    return Topology("script")

if __name__ == "__main__":
    located = locate_function(topology)
    built = located.load_function()
    print(located, built.__module__, built is topology, located.build().name)
"""


def test_a_script_is_located_by_its_file_and_imported_under_another_name(tmp_path):
    assert re.fullmatch(
        r"count\.py:topology esault_topology_count_\w+ False script", script(tmp_path, SCRIPT, "count.py")
    )


def test_a_module_run_with_m_is_located_by_its_name(tmp_path):
    assert script(tmp_path, SCRIPT, "-m", "count") == "count:topology count False script"


def test_a_function_given_on_the_command_line_is_refused(tmp_path):
    assert "topology was not read from a file" in script(tmp_path, "", "-c", SCRIPT)


def test_a_script_without_a_guard_is_told_to_have_one(tmp_path):
    said = script(
        tmp_path,
        """
        from esault import Topology
        from esault.topology.locate import locate_function

        def topology():
            return Topology("script")

        locate_function(topology).build()
        """,
        "count.py",
    )
    assert "topology is run while count.py is being imported" in said
    assert 'put the run(...) under `if __name__ == "__main__":`' in said


@pytest.mark.parametrize("command", [("count.py",), ("-m", "count")], ids=["file", "module"])
def test_a_function_under_the_guard_is_told_to_stand_above_it(tmp_path, command):
    said = script(
        tmp_path,
        """
        from esault import Topology
        from esault.topology.locate import locate_function

        def other():
            pass

        if __name__ == "__main__":
            def topology():
                return Topology("script")

            locate_function(topology).build()
        """,
        *command,
    )
    assert "'topology' is there only where the file is the script that runs" in said
    assert "move it above that" in said


def test_a_function_whose_module_has_no_python_file_is_refused(monkeypatch):
    def made():
        pass

    made.__qualname__ = "made"
    place = types.ModuleType("place")
    made.__module__ = "place"
    with pytest.raises(LocateError, match="made is in 'place', which has no file"):
        locate_function(made)
    monkeypatch.setitem(sys.modules, "place", place)
    place.__file__ = "/somewhere/place.so"
    with pytest.raises(LocateError, match="made comes from /somewhere/place.so, which is no .py file"):
        locate_function(made)
    place.__file__ = "/somewhere/place.py"
    with pytest.raises(LocateError, match="has another 'made' at its top level"):
        locate_function(made)


def test_a_current_folder_that_was_removed_is_said(here):
    (here / "gone").mkdir()
    os.chdir(here / "gone")
    (here / "gone").rmdir()
    for spec in ("../words.py", "words"):
        with pytest.raises(LocateError, match="the folder in which this was started is not there any more"):
            locate(spec)
    with pytest.raises(LocateError, match="is not there any more"):
        locate_function(topology)
