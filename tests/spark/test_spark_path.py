"""Files of a file system that Spark knows, and a run whose state is there: Hadoop's ViewFs, over folders of this machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from esault.errors import CheckpointError, UsageError
from esault.messages.settings import Settings
from esault.runtime.session.request import Request
from esault.runtime.session.run import execute
from esault.spark.engine.journal import Journal, Record
from esault.spark.spark_path import SparkPath, copy_tree, put, put_absent, remove_tree, write_blocks
from esault.topology.locate import locate

FLOWS = str(Path(__file__).parents[1] / "unit" / "spark" / "engine" / "flows.py")

pytestmark = pytest.mark.timeout(400)  # for a machine that has much else to do


@pytest.fixture
def far(spark: Any, tmp_path: Path) -> Iterator[str]:
    """The address of a folder."""
    name, folder = f"t{abs(hash(tmp_path))}", tmp_path / "far"
    folder.mkdir()
    setting = f"fs.viewfs.mounttable.{name}.link./data"
    spark._jsc.hadoopConfiguration().set(setting, folder.as_uri())
    yield f"viewfs://{name}/data"
    spark._jsc.hadoopConfiguration().unset(setting)


def test_files_are_whole_and_what_fails_is_an_error_of_python(spark: Any, far: str) -> None:
    place = SparkPath(spark, far)
    folder = place / "a" / "b"
    folder.mkdir(parents=True, exist_ok=True)
    assert list((place / "none").glob("*")) == [] and not (place / "none").exists()
    data = bytes(range(256)) * 40
    for content in (b"", data, data[::-1]):  # in place of what was there
        put(folder / "one.bin", content)
        assert (folder / "one.bin").read_bytes() == content
    assert put_absent(folder / "two.txt", b"first") and not put_absent(folder / "two.txt", b"second")
    assert (folder / "two.txt").read_text() == "first"
    write_blocks(folder / "three.bin", (data[i : i + 1000] for i in range(0, len(data), 1000)))
    assert (folder / "three.bin").read_bytes() == data
    assert [path.name for path in folder.glob("*")] == ["one.bin", "three.bin", "two.txt"]  # no drafts are left
    assert [path.stem for path in folder.glob("t*.txt")] == ["two"]
    copy_tree(folder, place / "copy")
    copy_tree(place / "none", place / "nothing")
    assert (place / "copy" / "two.txt").read_text() == "first" and not (place / "nothing").exists()
    (folder / "one.bin").unlink()
    (folder / "one.bin").unlink(missing_ok=True)
    for call in ((folder / "one.bin").unlink, (folder / "one.bin").read_bytes):
        with pytest.raises(FileNotFoundError):
            call()
    with pytest.raises(OSError, match="Wrong FS|No FileSystem for scheme"):
        SparkPath(spark, "nowhere://x/y").exists()
    remove_tree(place / "a")
    remove_tree(place / "a")
    assert not (place / "a").exists()


def test_a_state_that_this_spark_cannot_reach_is_refused_with_the_remedy(spark: Any, tmp_path: Path) -> None:
    for state, remedy in (
        (
            "s3://bucket/words",
            "no file system for s3a://; give it --conf spark.jars.packages=org.apache.hadoop:hadoop-aws:[0-9.]+$",
        ),
        ("abc://bucket/words", "no file system for abc://; give it its jar with --conf spark.jars=PATH"),
    ):
        flow, exactly = locate(f"{FLOWS}:endless"), Settings(delivery="eo")
        with pytest.raises(UsageError, match=remedy):
            execute(Request(flow, {"out": str(tmp_path)}, "spark", exactly, state=state))


def test_of_two_runs_with_one_journal_the_second_to_write_an_epoch_ends(spark: Any, far: str) -> None:
    one, two = (Journal(SparkPath(spark, far) / "epochs") for _ in range(2))
    record = Record((("sink", b"handle"),), (), {("u", 0): (1, b"x")}, False)
    one.write(0, record)
    assert two.read(0) == record and two.newest() == 0 and two.done == -1
    with pytest.raises(CheckpointError, match="another run has written epoch 0"):
        two.write(0, record._replace(ended=True))
    assert one.read(0) == record
    one.finish(0)
    assert two.done == 0


def test_a_run_goes_on_from_a_state_that_no_worker_sees(
    spark: Any, far: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("esault.spark.engine.batch_size.FIRST", 200)  # a batch is soon over

    def run(**options: Any) -> Any:
        flow, exactly = locate(f"{FLOWS}:endless"), Settings(delivery="eo")
        return execute(Request(flow, {"out": str(tmp_path)}, "spark", exactly, state=f"{far}/state", **options))

    first = run(seconds=0.2)
    assert first.ended == "paused" and first.checkpoints.directory == f"{far}/state"
    with pytest.raises(UsageError, match="holds a run that did not finish: go on with --resume"):
        run()
    # with other tasks, to which Spark brings the state
    second = run(resume=True, parallelism={"count": 3}, seconds=0.2)
    assert second.checkpoints.resumed_from == first.checkpoints.newest > 0
    assert second.units["count"].parallelism == [(0.0, 3)]
    seen: dict[int, list[int]] = {}
    for line in (tmp_path / "rows.jsonl").read_text().splitlines():
        row = json.loads(line)
        seen.setdefault(row["key"], []).append(row["value"])
    assert len(seen) == 7
    for values in seen.values():  # each total once, none left out
        assert sorted(values) == list(range(1, len(values) + 1))
    total = first.units["count"].tuples_in + second.units["count"].tuples_in
    assert sum(map(len, seen.values())) == total
