"""The order of the suite's files, and how many examples they take."""

from __future__ import annotations

from types import SimpleNamespace

import depth
import order
import pytest
from hypothesis import settings


def items(*paths):
    return [SimpleNamespace(path=order.ROOT / path, number=number) for number, path in enumerate(paths)]


def test_what_takes_long_comes_first_and_a_files_tests_stay_in_their_order(monkeypatch):
    monkeypatch.setattr(order, "durations", lambda: {"tests/a.py": 3.0, "tests/b.py": 9.0})
    found = items("tests/a.py", "tests/b.py", "tests/c.py", "tests/b.py")
    order.longest_first(found)
    assert [item.number for item in found] == [1, 3, 0, 2]


def test_files_that_share_a_session_of_spark_are_together_and_count_together(monkeypatch):
    monkeypatch.setattr(
        order, "durations", lambda: {"tests/b.py": 9.0, "tests/spark/x.py": 5.0, "tests/spark/e/y.py": 5.0}
    )
    found = items("tests/b.py", "tests/spark/x.py", "tests/spark/e/y.py")
    order.longest_first(found)
    assert [item.number for item in found] == [1, 2, 0]
    assert order.group("tests/spark/x.py") == order.group("tests/spark/e/y.py") != order.group("tests/b.py")
    assert order.group("tests/spark/x.py") == order.group("tests/spark/engine/y.py")
    assert order.group("tests/connectors/kafka/x.py") != order.group("tests/connectors/mqtt/x.py")


def test_the_recorder_keeps_what_was_not_run_and_forgets_files_that_are_gone(tmp_path, monkeypatch):
    monkeypatch.setattr(order, "TABLE", tmp_path / "durations.json")
    order.TABLE.write_text('{"tests/conftest.py": 7.0, "tests/gone.py": 8.0}')
    recorder = order.Recorder()
    for seconds in (1.5, 2.0):
        recorder.pytest_runtest_logreport(SimpleNamespace(nodeid="tests/coverage_floor.py::test", duration=seconds))
    recorder.pytest_sessionfinish()
    assert order.durations() == {"tests/conftest.py": 7.0, "tests/coverage_floor.py": 3.5}


@pytest.mark.parametrize(
    ("profile", "taken"), [("deep", [2, 20, 100]), ("developer", [2, 5, 25]), ("ci", [2, 5, 25]), ("quick", [1, 2, 10])]
)
def test_a_profile_takes_its_share_of_what_is_asked_for(profile, taken, monkeypatch):
    monkeypatch.setattr(depth, "PROFILE", profile)
    assert [depth.of(asked) for asked in (2, 20, 100)] == taken
    assert len(depth.seeds(20)) == depth.fewer(settings(max_examples=20)).max_examples == taken[1]
