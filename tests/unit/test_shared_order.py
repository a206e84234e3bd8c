"""The order of the suite's files, and how many examples they take."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import order
import pytest


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
    assert order.group("tests/connectors/kafka/x.py") == order.group("tests/acceptance/test_kafka.py")
    assert all((order.ROOT / path).exists() for path in order.BESIDE)


def test_the_recorder_keeps_what_was_not_run_and_forgets_files_that_are_gone(tmp_path, monkeypatch):
    monkeypatch.setattr(order, "TABLE", tmp_path / "durations.json")
    order.TABLE.write_text('{"tests/conftest.py": 7.0, "tests/gone.py": 8.0}')
    recorder = order.Recorder()
    for seconds in (1.5, 2.0):
        recorder.pytest_runtest_logreport(ended("tests/coverage_floor.py::test", seconds))
    recorder.pytest_sessionfinish()
    assert order.durations() == {"tests/conftest.py": 7.0, "tests/coverage_floor.py": 3.5}


def ended(nodeid, duration=0.0, **properties):
    return SimpleNamespace(nodeid=nodeid, duration=duration, when="teardown", user_properties=tuple(properties.items()))


def test_a_test_is_long_by_the_mean_of_its_processor_time(tmp_path, monkeypatch):
    monkeypatch.setattr(order, "LONG_TESTS", tmp_path / "long.txt")
    recorder = order.Recorder("long")
    for name, seconds in {"b": 0.2, "a[1]": 0.15, "a[2]": 0.1, "c[1]": 0.11, "c[2]": 0.01}.items():
        recorder.pytest_runtest_logreport(ended(f"tests/x.py::{name}", processor=seconds))
    recorder.pytest_runtest_logreport(ended(f"{order.KEPT}::d", processor=9.0))
    recorder.pytest_sessionfinish()
    assert order.LONG_TESTS.read_text() == "tests/x.py::a\ntests/x.py::b\n"
    assert order.long_tests() == {"tests/x.py::a", "tests/x.py::b"}


def test_each_test_brings_what_it_and_its_children_computed():
    item = SimpleNamespace(user_properties=[])
    meter = order.Meter()
    around = meter.pytest_runtest_protocol(item)
    next(around)
    child = "x = 0\nfor i in range(3_000_000): x += i"
    subprocess.run([sys.executable, "-c", child], check=True)
    after = meter.pytest_runtest_teardown(item)
    next(after)
    with pytest.raises(StopIteration):
        after.send(None)
    ((name, seconds),) = item.user_properties
    assert name == "processor" and 0.02 < seconds < 60


def test_all_long_tests_are_there():
    for test in order.long_tests():
        path, *names = test.split("::")
        assert names[0] in (order.ROOT / path).read_text(), test
