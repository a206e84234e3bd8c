"""The archive of classes: who writes it, who uses it, and that nothing fails for want of it."""

from __future__ import annotations

import os

import pytest

from esault.spark import class_archive as module
from esault.spark.class_archive import class_archive

pytest.importorskip("pyspark")


@pytest.fixture
def environ(tmp_path):
    """The environment of a user who has a full Java."""
    home = tmp_path / "java"
    (home / "lib" / "server").mkdir(parents=True)
    (home / "lib" / "server" / "classes.jsa").touch()
    (home / "release").write_text('JAVA_VERSION="17.0.15"')
    return {"JAVA_HOME": str(home), "XDG_CACHE_HOME": str(tmp_path / "cache")}


@pytest.fixture
def said():
    return []


def session(environ, said, written=b"classes"):
    """What one session's Java is started with; it writes its archive if it was told to."""
    with class_archive(environ, said.append) as found:
        options = found.options
        found.announce()
        if found.making and written is not None:
            draft = options.partition("-XX:ArchiveClassesAtExit=")[2]
            with open(draft, "wb") as file:
                file.write(written)
        found.written()
    return options


def test_the_first_session_writes_it_and_later_ones_use_it(environ, said):
    first, second = session(environ, said), session(environ, said)
    assert "-XX:ArchiveClassesAtExit=" in first
    assert "-XX:SharedArchiveFile=" in second and "-Xshare:auto" in second
    (text,) = said
    assert "it starts in half of the time from now on (ESAULT_CLASS_ARCHIVE=off does without)" in text


def test_another_java_has_another_one(environ, said, tmp_path):
    session(environ, said)
    (tmp_path / "java" / "release").write_text('JAVA_VERSION="21.0.1"')
    assert "-XX:ArchiveClassesAtExit=" in session(environ, said)


def test_while_one_session_writes_others_do_without(environ, said):
    with class_archive(environ, said.append) as first:
        assert first.making and first.patience > 0
        with class_archive(environ, said.append) as second:
            assert (second.options, second.making, second.patience) == ("", False, 0)
            second.announce()
            second.written()
    assert not said


def test_one_that_was_killed_leaves_room_for_the_next(environ, said, tmp_path):
    with class_archive(environ, said.append) as killed:
        draft = killed.options.partition("-XX:ArchiveClassesAtExit=")[2]
        open(draft, "wb").close()
    assert "-XX:ArchiveClassesAtExit=" in session(environ, said)
    assert {path.suffix for path in (tmp_path / "cache" / "esault").iterdir()} == {".jsa", ".lock"}


def test_those_that_were_not_used_for_longest_are_removed(environ, said, tmp_path):
    release, folder = tmp_path / "java" / "release", tmp_path / "cache" / "esault"
    found = []
    for number in range(4):
        release.write_text(f"JAVA_VERSION={number}")
        session(environ, said)
        (made,) = set(folder.glob("*.jsa")) - set(found)
        os.utime(made, (number, number))
        found.append(made)
    release.write_text("JAVA_VERSION=0")
    session(environ, said)  # is used again
    release.write_text("JAVA_VERSION=9")
    session(environ, said)
    assert {path.name for path in found if path.exists()} == {found[number].name for number in (0, 2, 3)}
    assert len(list(folder.iterdir())) == 8


def test_a_java_that_cannot_write_one_is_not_asked_again(environ, said):
    session(environ, said, written=None)
    assert session(environ, said) == ""


@pytest.mark.parametrize("name", ["SPARK_CONF_DIR", "SPARK_HOME", "HADOOP_CONF_DIR", "YARN_CONF_DIR"])
def test_none_is_written_where_java_looks_for_classes_in_a_folder_with_files(environ, said, tmp_path, name):
    folder = tmp_path / "settings" / "conf"
    named = {**environ, name: str(folder.parent if name == "SPARK_HOME" else folder)}
    folder.mkdir(parents=True)
    (folder / "spark-defaults.conf").touch()
    assert session(named, said) == "" and not said
    (folder / "spark-defaults.conf").unlink()
    assert "-XX:ArchiveClassesAtExit=" in session(named, said)


def test_it_can_be_switched_off(environ, said, tmp_path):
    assert session({**environ, "ESAULT_CLASS_ARCHIVE": "off"}, said) == ""
    assert not (tmp_path / "cache").exists()


def test_a_java_without_an_archive_of_its_own_has_none(environ, said, tmp_path):
    (tmp_path / "java" / "lib" / "server" / "classes.jsa").unlink()
    assert session(environ, said) == ""


def test_a_full_disk_or_a_folder_that_cannot_be_written_is_no_reason_to_fail(environ, said, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(module, "SPARE", 1 << 60)
        assert session(environ, said) == ""
    (tmp_path / "file").touch()
    assert session({**environ, "XDG_CACHE_HOME": str(tmp_path / "file")}, said) == ""
