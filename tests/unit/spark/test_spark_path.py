"""Addresses of Spark's file systems as paths, what Java throws as Python's errors, and the same on this machine."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'esault[spark]'")
from py4j.protocol import Py4JJavaError

from esault.spark.spark_path import SparkPath, _asked, copy_tree, put, put_absent, remove_tree, write_blocks


class Thrown(Py4JJavaError):
    """An exception of Java's, without Java."""

    def __init__(self, kind: str, text: str | None) -> None:
        found = SimpleNamespace(getSimpleName=lambda: kind)
        self.java_exception = SimpleNamespace(getClass=lambda: found, getMessage=lambda: text)


def asked(kind: str, text: str | None) -> Any:
    def call() -> None:
        raise Thrown(kind, text)

    return _asked(call)


def test_an_address_has_the_parts_of_a_path() -> None:
    place = SparkPath(None, "s3a://bucket/state/spark/") / "epochs" / "00000007.epoch"
    assert str(place) == place.as_uri() == "s3a://bucket/state/spark/epochs/00000007.epoch"
    assert (place.name, place.stem, str(place.parent)) == (
        "00000007.epoch",
        "00000007",
        "s3a://bucket/state/spark/epochs",
    )
    assert str(SparkPath(None, "hdfs:///esault") / "words") == "hdfs:///esault/words"


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("FileNotFoundException", FileNotFoundError),
        ("FileAlreadyExistsException", FileExistsError),
        ("PathNotFoundException", OSError),
        ("AccessControlException", OSError),
    ],
)
def test_what_java_throws_is_an_error_of_pythons(kind: str, error: type[OSError]) -> None:
    with pytest.raises(error) as raised:
        asked(kind, "s3a://bucket/state: no\nat org.apache.hadoop")
    assert type(raised.value) is error
    if error is OSError:
        assert str(raised.value) == f"{kind}: s3a://bucket/state: no"


def test_a_store_that_says_412_has_a_file_of_another_one() -> None:
    with pytest.raises(FileExistsError, match="Status Code: 412"):
        asked("RemoteFileChangedException", "PUT of state: Status Code: 412")
    with pytest.raises(OSError) as raised:
        asked("AWSStatus500Exception", "request 412 of many")
    assert type(raised.value) is OSError


@pytest.mark.parametrize("text", ["", None, "\n"])
def test_an_exception_without_a_text_is_told_by_its_kind(text: str | None) -> None:
    with pytest.raises(OSError, match="IOException: (None)?$"):
        asked("IOException", text)


def test_files_of_this_machine_are_put_copied_and_removed(tmp_path: Path) -> None:
    state, copy = tmp_path / "state", tmp_path / "copy"
    state.mkdir()
    put(state / "done", b"7")
    assert put_absent(state / "8.epoch", b"record")
    assert {path.name for path in state.iterdir()} == {"done", "8.epoch"}
    copy_tree(state, copy)
    assert (copy / "done").read_bytes() == b"7"
    copy_tree(tmp_path / "not there", tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()
    remove_tree(copy)
    remove_tree(copy)
    assert not copy.exists() and state.exists()


def test_blocks_are_written_one_behind_the_other_for_this_user_alone(tmp_path: Path) -> None:
    write_blocks(tmp_path / "seed", iter([b"ab", b"", b"c"]))
    assert (tmp_path / "seed").read_bytes() == b"abc"
    assert stat.S_IMODE(os.stat(tmp_path / "seed").st_mode) == 0o600
