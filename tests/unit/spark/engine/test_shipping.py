"""What goes to the workers of a cluster, and what is said of Pythons that cannot run it."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from esault.errors import UsageError
from esault.spark.engine import workers as pythons
from esault.spark.engine.job import built
from esault.spark.engine.shipping import LIBRARIES, libraries, ship
from esault.spark.engine.workers import Workers, shared_places
from esault.topology.locate import locate

TOPOLOGY = """
import beside
from esault import Topology
from esault.sinks import JsonLines
from esault.sources import Items


def topology() -> Topology:
    t = Topology(beside.NAME)
    t.spout("s", Items([(1, 1)])).sink("out", JsonLines("out/rows.jsonl"))
    return t
"""


@pytest.fixture
def located(tmp_path: Path) -> Any:
    work = tmp_path / "work"
    work.mkdir()
    (work / "my-words.py").write_text(TOPOLOGY)
    (work / "beside.py").write_text("NAME = 'first'\n")
    return locate(str(work / "my-words.py"))


def test_what_is_shipped_has_a_name_that_follows_from_its_files(located: Any, tmp_path: Path) -> None:
    first, again = ship(located, tmp_path), ship(located, tmp_path)
    assert (first.path, first.code) == (again.path, again.code)
    (tmp_path / "work" / "beside.py").write_text("NAME = 'second'\n")
    second = ship(located, tmp_path)
    assert second.path != first.path and second.code != first.code
    assert second.located.module == first.located.module == "esault_topology_my_words"  # state may hold it
    names = zipfile.ZipFile(first.path).namelist()
    assert {"beside.py", "my-words.py", "esault_topology_my_words.py", "esault/__init__.py"} <= set(names)


def test_a_worker_that_has_zips_of_several_runs_imports_from_that_of_its_own(located: Any, tmp_path: Path) -> None:
    first = ship(located, tmp_path)
    (tmp_path / "work" / "beside.py").write_text("NAME = 'second'\n")
    second = ship(located, tmp_path)
    for mine, name in ((first, "first"), (second, "second")):
        code = (
            "import sys; from esault.topology.located import Located; from esault.spark.engine.job import built\n"
            f"print(built(Located('topology', 'zips/{mine.path.name}', '/nowhere', module={mine.located.module!r}), {{}}).name)"
        )
        path = os.pathsep.join(map(str, (second.path, first.path)))
        done = subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONPATH": path}, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == name
    assert built(located, {}).name == "second"


def test_libraries_go_along_so_that_a_python_without_them_can_import_them(tmp_path: Path) -> None:
    archive = libraries(["msgpack", "google.protobuf", "sortedcontainers"], tmp_path)
    zipfile.ZipFile(archive).extractall(tmp_path / "there")
    code = "import msgpack, sortedcontainers, google.protobuf.message; print(msgpack.__file__)"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": str(tmp_path / "there")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(str(tmp_path / "there"))


class _Context(SimpleNamespace):
    def addArchive(self, path: str) -> None:
        self.archives.append(Path(path).name)


def workers(tmp_path: Path) -> tuple[Workers, list[str]]:
    made, said = object.__new__(Workers), list[str]()
    made._context, made._folder, made._say, made._environment = _Context(archives=[]), tmp_path, said.append, {}
    made._cluster = True
    return made, said


def seen(**changed: Any) -> dict[str, Any]:
    here = {"host": "h", "executable": "/py", "version": "3.11.2", "abi": pythons._abi(), "missing": []}
    return {**here, "machine": os.uname().machine, "unseen": [], **changed}


def test_what_is_small_and_missing_is_sent_and_what_is_large_is_refused(tmp_path: Path) -> None:
    made, said = workers(tmp_path)
    made._check_libraries([seen(), seen(missing=["msgpack"]), seen(missing=["sortedcontainers"])])
    assert made._context.archives == ["libraries-msgpack-protobuf-sortedcontainers.zip"]
    assert made._environment == {"PYTHONPATH": "libraries-msgpack-protobuf-sortedcontainers.zip"}
    assert said == ["workers lack msgpack, sortedcontainers: sent along"]
    with pytest.raises(
        UsageError, match=r"on h \(/py, 3.11.2\) lacks msgpack, pandas: install them there \(pip install msgpack pandas"
    ):
        made._check_libraries([seen(missing=["msgpack", "pandas"])])
    with pytest.raises(UsageError, match="lacks protobuf"):  # what was made for another machine
        made._check_libraries([seen(missing=["google.protobuf"], abi="cpython-38-sparc")])
    made._check_libraries([seen(), seen(abi="cpython-38-sparc")])
    assert len(made._context.archives) == 1


def test_pythons_that_cannot_run_are_told_with_the_remedy() -> None:
    absent = pythons._what_failed(
        "/opt/py", Exception('... java.io.IOException: Cannot run program "/opt/py": error=2')
    )
    assert (
        absent is not None
        and absent.startswith("workers have no Python /opt/py: ")
        and "PYSPARK_PYTHON=python3" in absent
    )
    other = pythons._what_failed(
        "python3",
        Exception(
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in driver: 3.11, PySpark"
        ),
    )
    assert other is not None and "python3 is another version of Python on the workers (3.9)" in other
    assert pythons._what_failed("python3", Exception("disk full")) is None


def test_folders_that_must_be_shared_are_those_of_the_state_and_of_sinks(
    located: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = built(located, {})
    monkeypatch.chdir(tmp_path)
    places = shared_places(tmp_path / "state", plan)
    assert list(places.values()) == [tmp_path / "state", tmp_path]  # out/ is not there yet
    assert list(places)[1] == "sink 'out' writes out/rows.jsonl, and"


def test_what_is_shipped_is_what_workers_import() -> None:
    assert set(LIBRARIES) == {"msgpack", "sortedcontainers", "google.protobuf"}
    code = (
        "import sys, pyspark.sql.datasource; own = set(sys.modules)\n"  # pyspark 4.1 takes psutil where it is there
        "import esault.spark.engine.stages, esault.spark.engine.processor, esault.spark.engine.source\n"
        "found = {name: m for name, m in sys.modules.items() if name not in own}\n"
        "print(*{name.partition('.')[0] for name, m in found.items() if 'site-packages' in (getattr(m, '__file__', '') or '')})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    others = set(done.stdout.split()) - {"pyspark", "py4j", "_distutils_hack", "pyarrow", "numpy", "pandas"}
    assert others <= {"msgpack", "sortedcontainers", "google"}
