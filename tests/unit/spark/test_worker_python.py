"""The Python of Spark's workers: ours, with the installed pyspark before Spark's zip of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from esault.spark.worker_python import start_path, worker_python

pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'esault[spark]'")


def test_workers_import_pyspark_with_its_bytecode_and_all_else_as_before(tmp_path: Path) -> None:
    folder = tmp_path / "a folder's"
    folder.mkdir()
    program = worker_python(folder)
    code = "import sys, pyspark, json; print(sys.executable); print(pyspark.__cached__); print(sys.path[2]); print(sys.argv[1])"
    zip = Path(pyspark.__file__).parent / "python" / "lib" / "pyspark.zip"
    said = subprocess.run(
        [program, "-c", code, "an argument"],
        env={"PYTHONPATH": str(zip)},
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    assert said[0] == sys.executable and said[2:] == [str(zip), "an argument"]
    assert Path(said[1]).samefile(pyspark.__cached__)


def test_a_python_that_starts_with_the_path_does_so_whatever_stands_before(tmp_path: Path) -> None:
    zip = Path(pyspark.__file__).parent / "python" / "lib" / "pyspark.zip"
    path = f"{zip}:{start_path(tmp_path)}"
    code = "import pyspark; print(pyspark.__cached__)"
    said = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": path}, check=True, capture_output=True, text=True
    ).stdout
    assert Path(said.strip()).samefile(pyspark.__cached__)
