"""What a session is made of, without a Java."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from esault.errors import UsageError
from esault.spark.failure import BEGIN, END, without_told
from esault.spark.folder import temporary_folder
from esault.spark.master import check_master
from esault.spark.session import OLDEST, _conf, require_pyspark, session


@pytest.mark.parametrize(
    "master", ["foo", "spark://host", "spark://host:x", "local[", "http://host:7077", "", "spark://"]
)
def test_a_master_that_spark_does_not_know_is_refused_by_its_name(master):
    with pytest.raises(UsageError, match="Spark knows no such URL; write spark://HOST:PORT"):
        check_master(master)


def test_spark_connect_is_refused_with_the_reason():
    with pytest.raises(UsageError, match="Spark Connect takes queries"):
        check_master("sc://host:15002")


@pytest.mark.parametrize(
    "master", ["local", "local[2]", "local[*]", "local[*,3]", "local-cluster[2,1,1024]", "yarn", "k8s://h"]
)
def test_masters_that_need_no_connection_pass(master):
    check_master(master)


def test_a_master_that_nobody_answers_for_is_named_and_one_of_several_is_enough():
    with socket.socket() as there, socket.socket() as gone:
        there.bind(("127.0.0.1", 0))
        there.listen()
        gone.bind(("127.0.0.1", 0))  # taken, and nobody listens
        here, nobody = (f"127.0.0.1:{s.getsockname()[1]}" for s in (there, gone))
        check_master(f"spark://{nobody},{here}")
        with pytest.raises(UsageError, match=rf"--master spark://{nobody}: no master .*Connection refused"):
            check_master(f"spark://{nobody}")


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def test_a_folder_goes_with_its_block_and_those_of_the_living_stay(temporary):
    with temporary_folder() as one, temporary_folder("run-") as other:
        assert one.is_dir() and other.name.startswith("esault-spark-run-")
        assert set(temporary.iterdir()) == {one, other}
    assert not list(temporary.iterdir())


def test_the_folder_of_a_killed_process_goes_with_the_next_session(temporary):
    program = (
        "import os, signal\nfrom esault.spark.folder import temporary_folder\n"
        "with temporary_folder('run-'):\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    killed = subprocess.run([sys.executable, "-c", program], env=environment, check=False, timeout=200)
    assert killed.returncode == -signal.SIGKILL
    (left,) = temporary.iterdir()
    with temporary_folder():
        assert not left.exists()


def test_what_workers_print_is_passed_on_but_for_the_error_that_the_driver_tells():
    ours = ["PySpark worker failed with exception:\n", "Traceback ...\n", f"WorkerError: {BEGIN}unit 'b': boom\n", "\n"]
    theirs = ["PySpark worker failed with exception:\n", "Traceback ...\n", "EOFError\n", "\n"]
    lines = ["one\n", *ours, f"  raise{END}\n", "\n", "two\n", *theirs, "\n", "three\n", theirs[0], theirs[1]]
    assert list(without_told(lines)) == ["one\n", "two\n", *theirs, "\n", "three\n", theirs[0], theirs[1]]


def test_the_clusters_own_settings_hold_behind_those_that_are_given(tmp_path, monkeypatch):
    (tmp_path / "spark-defaults.conf").write_text(
        "# of the cluster\n\nspark.master  spark://host:7077\nspark.executor.memory=3g\n"
        "spark.sql.session.timeZone : Europe/Berlin\nspark.eventLog.dir\thdfs:///logs\nspark.empty\nother.setting 1\n"
    )
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    found = _conf(None, "a topology", str(tmp_path), {"spark.executor.memory": "2g"})
    assert found["spark.master"] == "spark://host:7077" and "spark.driver.host" not in found
    assert (found["spark.executor.memory"], found["spark.eventLog.dir"]) == ("2g", "hdfs:///logs")
    assert (found["spark.sql.session.timeZone"], found["spark.ui.enabled"]) == ("Europe/Berlin", "true")
    assert not {"spark.empty", "other.setting"} & found.keys()
    local = _conf("local[2]", "a topology", str(tmp_path), {})
    assert (local["spark.master"], local["spark.ui.enabled"]) == ("local[2]", "false")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "none"))
    assert _conf(None, "a topology", str(tmp_path), {})["spark.master"] == "local[*]"


@pytest.mark.parametrize(
    "version", ["3.5.8", "4.0.5", "4.1.0", "4.1.4", "4.3.0", "5.0.0.dev1", "10.0", "unknown", None]
)
def test_a_pyspark_that_is_too_old_is_refused(version: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    def said(name: str) -> str:
        if version is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(importlib.metadata, "version", said)
    if version in ("3.5.8", "4.0.5"):
        with pytest.raises(
            UsageError, match=rf"needs pyspark 4\.1 or newer, and {re.escape(version)} is installed: pip install"
        ):
            require_pyspark()
    else:
        require_pyspark()


def test_the_oldest_pyspark_is_the_one_that_is_installed_by_the_extra() -> None:
    said = (Path(__file__).parents[3] / "setup.cfg").read_text()
    assert f"pyspark[sql]>={'.'.join(map(str, OLDEST))}\n" in said


def test_a_thread_takes_the_session_that_another_has_made_unless_it_was_stopped(monkeypatch):
    pytest.importorskip("pyspark")
    from types import SimpleNamespace

    from pyspark.sql import SparkSession

    there = SimpleNamespace(_jvm=None, _sc=SimpleNamespace(_jsc=object()))
    monkeypatch.setattr(SparkSession, "_instantiatedSession", there)
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)  # as Spark says in a thread of its own
    with session() as found:
        assert found is there
    there._sc._jsc = None  # as `sparkContext.stop()` leaves it
    with pytest.raises(UsageError, match="Spark knows no such URL"), session("foo"):
        raise AssertionError("it is over")
