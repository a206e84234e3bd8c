"""The rate that `bench.spark_workers` reckons from the times at which tuples were done."""

from __future__ import annotations

import json
import sys

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'esault[spark]'")

from bench.spark_workers import __main__ as bench


def test_it_is_that_of_the_last_three_quarters():
    slow, quick = [10.0 * n for n in range(100)], [1000.0 + n / 200 for n in range(301)]
    assert bench.rate_of([*quick, *slow]) == pytest.approx(200.0)


def test_the_result_says_how_many_times_the_rate_of_one_worker(tmp_path, monkeypatch, capsys):
    asked = []

    def ran(workers, rows):
        asked.append((workers, rows))
        return {1: 150.0, 2: 290.0, 3: 405.0}[workers]

    monkeypatch.setattr(bench, "_ran", ran)
    monkeypatch.setattr(sys, "argv", ["spark_workers", "--out", str(tmp_path), "--quick"])
    bench.main()
    assert asked == [(1, 1000), (2, 2000), (3, 3000)]
    assert "3 workers: 405 tuples/s (405 to 405), x 2.70" in capsys.readouterr().out
    assert json.loads((tmp_path / "result.json").read_text())["rates"] == {"1": [150.0], "2": [290.0], "3": [405.0]}
