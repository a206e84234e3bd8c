"""Times that workers leave for the driver: each taken once, and a batch's seconds by its stages."""

from __future__ import annotations

from pathlib import Path

from esault.spark.engine.timings import leave_times, seconds_of, take_times


def test_what_workers_leave_is_taken_once(tmp_path: Path) -> None:
    leave_times(str(tmp_path), {"count": [1, 2.5]}, "0", 3.0)
    leave_times(str(tmp_path), {"split": [4, 0.5]}, "1", 1.0)
    taken = list(take_times(str(tmp_path)))
    assert sorted(name for times in taken for name in times if name) == ["count", "split"]
    assert [list(times["count"]) for times in taken if "count" in times] == [[1, 2.5]]
    assert list(take_times(str(tmp_path))) == [] and list((tmp_path / "times").iterdir()) == []


def test_what_is_half_written_or_damaged_is_left_out(tmp_path: Path) -> None:
    leave_times(str(tmp_path), {}, "0", 3.0)
    (tmp_path / "times" / ".abc").write_bytes(b"\x00")
    (tmp_path / "times" / "0damaged").write_bytes(b"\xff\xff\xff")
    assert seconds_of(take_times(str(tmp_path))) == (3.0, 3.0)
    assert [path.name for path in (tmp_path / "times").iterdir()] == [".abc"]


def test_without_a_folder_that_the_driver_sees_nothing_is_left(tmp_path: Path) -> None:
    leave_times("", {"count": [1]}, "0", 3.0)
    assert list(take_times("")) == [] and list(take_times(str(tmp_path))) == []
    leave_times(str(tmp_path / "is" / "not" / "there"), {"count": [1]}, "0", 3.0)  # is missing in the report alone


def test_stages_follow_each_other_and_their_processes_stand_side_by_side() -> None:
    left = [{"": ("0", 2.0)}, {"": ("0", 3.0)}, {"": ("1", 1.0), "count": [1]}, {"": ("1", 0.5)}]
    assert seconds_of(left) == (3.0 + 1.0, 6.5)
    assert seconds_of([{"count": [1]}]) is None and seconds_of([]) is None
