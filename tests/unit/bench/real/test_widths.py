"""Bench widths: what runs, what is called the best fixed width, and what is refused."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from bench.kit.result import work_before
from bench.real import widths
from bench.real.run import ESAULT, Work
from bench.real.workloads import WORKLOADS


def run(rate, processor=1.0):
    return {"rows_per_second": rate, "processor_seconds": processor}


def test_each_kind_of_work_of_bench_real_has_fixed_widths():
    assert set(widths.WIDTHS) == set(WORKLOADS)
    assert all(len(each) >= 2 for each in widths.WIDTHS.values())


def test_a_fixed_width_runs_without_a_policy():
    work = Work(WORKLOADS["waits"], Path("data"), 10, 1.0)
    command = work.command("esault, none wait=8", Path("out"), False)
    assert command[-5:] == ["--policy", "none", "--parallelism", "wait=8", "--plain"]
    flights = Work(WORKLOADS["flights"], Path("data"), 10, 1.0)
    of_two = flights.command("esault, none line=2 day=2", Path("out"), False)
    assert of_two[-7:] == ["--policy", "none", "--parallelism", "line=2", "--parallelism", "day=2", "--plain"]


def test_the_default_has_no_options_of_its_own():
    work = Work(WORKLOADS["waits"], Path("data"), 10, 1.0)
    assert "--policy" not in work.command(ESAULT, Path("out"), False)


def test_the_best_fixed_width_is_that_with_the_greatest_median():
    found = widths.compared(
        {
            ESAULT: [run(9.0, 2.0), run(10.0, 2.0), run(9.5, 2.0)],
            "esault, none a=1": [run(20.0), run(1.0), run(2.0)],
            "esault, none a=2": [run(10.0, 1.0), run(10.0, 1.0), run(10.0, 1.0)],
        }
    )
    assert found["best"] == "esault, none a=2"
    assert found["default_over_best"]["rows_per_second"] == {"median": 0.95, "least": 0.9, "most": 1.0}
    assert found["default_over_best"]["processor_seconds"]["median"] == 2.0


def test_the_text_names_the_best_and_says_the_ratio():
    its = widths.compared({ESAULT: [run(9000.0)], "esault, none lines=1": [run(10000.0)]})
    text = widths.lines("chain", {"rows_in": 2000, "loops": {"2": its}})
    assert text[0] == "chain: five small bolts in a chain: 2,000 lines"
    assert "beside 2 busy loops" in text[1]
    assert "default over 'esault, none lines=1': rows/s 0.90 (0.90 to 0.90) x" in text[-1]


def test_work_that_cannot_run_says_why():
    assert widths.lines("flights", {"missing": "skipped: no flights"})[1] == "  skipped: no flights"


@pytest.mark.parametrize("text", ["", "a", "1,,2", "0,-1"])
def test_numbers_of_loops_that_make_no_sense_are_refused(text):
    with pytest.raises(argparse.ArgumentTypeError):
        widths._numbers(text)
    assert widths._numbers("0,2,6") == [0, 2, 6]


def test_an_earlier_result_of_other_sizes_is_not_gone_on_with(tmp_path):
    assert work_before(str(tmp_path), 3, 1.0, ["chain"]) == {}
    (tmp_path / "result.json").write_text('{"runs": 3, "share": 1.0, "work": {"chain": {"missing": "x"}}}')
    assert work_before(str(tmp_path), 3, 1.0, ["words"]) == {"chain": {"missing": "x"}}
    assert work_before(str(tmp_path), 2, 1.0, ["chain", "words"]) == {}
    with pytest.raises(SystemExit, match=r"of 3 runs at 1\.0 .* chain would be lost; use another --out"):
        work_before(str(tmp_path), 2, 1.0, ["words"])


def test_busy_loops_are_over_behind_the_work():
    import psutil

    before = {process.pid for process in psutil.Process().children()}
    with widths._busy(2):
        during = {process.pid for process in psutil.Process().children()} - before
        assert len(during) == 2
    assert not during & {process.pid for process in psutil.Process().children()}
