from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import esault
import esault.errors

HEAVY = ("thespian", "pyarrow", "pyspark", "msgpack", "msgspec", "numpy", "pandas", "rich", "asyncio", "typer")


def test_all_is_sorted_and_has_no_name_twice():
    assert esault.__all__ == sorted(set(esault.__all__))


def test_all_has_every_name_that_the_door_imports_and_run_and_the_version():
    tree = ast.parse(Path(esault.__file__).read_text())
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("esault.")
        for alias in node.names
    }
    assert set(esault.__all__) == imported | {"run", "read", "start", "RunHandle", "__version__"}


def test_all_has_every_error():
    assert set(esault.errors.__all__) <= set(esault.__all__)


def test_every_name_but_the_lazy_ones_is_there():
    for name in esault.__all__:
        if name not in ("run", "read", "start", "RunHandle"):
            assert name in vars(esault), name
    assert not {"run", "read", "start", "RunHandle"} & vars(esault).keys()
    assert "run" in dir(esault)


def test_a_name_that_is_not_there_is_an_attribute_error():
    assert not hasattr(esault, "Windmill")


def test_the_door_imports_nothing_heavy():
    code = f"import sys, esault; print([name for name in {HEAVY!r} if name in sys.modules])"
    root = str(Path(esault.__file__).parent.parent)
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_types_are_shipped():
    assert (Path(esault.__file__).parent / "py.typed").exists()


#: of a run on one machine: what other kinds of runs need, or what is needed once something goes wrong
NOT_FOR_A_RUN = (
    *("asyncio", "ssl", "numpy", "pyarrow", "pandas", "pyspark", "rich", "importlib.metadata", "email", "http"),
    *("esault.cluster", "esault.sinks", "esault.sources", "esault.spark", "esault.testing", "esault.sim"),
    *("esault.runtime.session.metrics_tables", "esault.runtime.remote", "esault.runtime.driver.hosts"),
)


def test_a_run_on_one_machine_imports_nothing_that_it_does_not_need():
    code = (
        "import sys, esault.cli.run, esault.runtime.session.run, esault.runtime.worker.keeper\n"
        "import esault.runtime.driver.driver_actor, esault.ui.plain\n"
        f"print([name for name in {NOT_FOR_A_RUN!r} if name in sys.modules])"
    )
    root = str(Path(esault.__file__).parent.parent)
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
