from __future__ import annotations

import json
import sys

import pytest


def test_a_ratio_is_of_medians_and_its_spread_of_runs_side_by_side():
    from bench.kit.measure import ratio

    assert ratio([2.0, 4.0, 30.0], [1.0, 2.0, 10.0]) == {"median": 2.0, "least": 2.0, "most": 3.0}
    assert ratio([2.0, 4.0], [1.0]) == {"median": 3.0, "least": 2.0, "most": 4.0}


def test_a_summary_is_text_with_its_unit_behind_the_median():
    from bench.kit.measure import spread, summary

    assert spread(summary([3e6, 1e6, 2e6]), ".1f", 1e6, " M/s") == "2.0 M/s (1.0 to 3.0)"
    assert spread(summary([1234.0])) == "1,234.00 (1,234.00 to 1,234.00)"


def test_engines_take_turns_and_one_that_is_missing_says_so(capsys):
    from bench.kit.measure import in_turns

    order = []

    def engine(name):
        order.append(name)
        return {"rows": len(order)}

    calls = {"a": lambda: engine("a"), "b": "skipped: b is not installed", "c": lambda: engine("c")}
    found = in_turns(2, calls, lambda run: f"{run['rows']} rows")
    assert order == ["a", "c", "a", "c"]
    assert found == {
        "a": [{"rows": 1}, {"rows": 3}],
        "b": "skipped: b is not installed",
        "c": [{"rows": 2}, {"rows": 4}],
    }
    out = capsys.readouterr().out
    assert out.count("b: skipped: b is not installed") == 1
    assert "run 2 of 2, c: 4 rows" in out


def test_a_package_that_is_not_there_is_named_with_the_remedy(monkeypatch):
    import importlib.util

    from bench.kit.measure import missing

    assert missing("json") is None
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert missing("bytewax") == "skipped: bytewax is not installed (pip install 'esault[bench]')"
    assert missing("pyarrow") == "skipped: pyarrow is not installed (pip install 'esault[parquet]')"


def test_a_run_that_puts_out_less_than_it_must_is_an_error(tmp_path, monkeypatch):
    from bench.kit import measure
    from bench.workloads.loads import make

    printed = {"rows": 9, "first": 1.0, "last": 2.0}
    (tmp_path / "engine.py").write_text(f"print({json.dumps(printed)!r})\n")
    monkeypatch.setattr(measure, "ROOT", tmp_path)
    load = make("sentences", 1, tmp_path)
    with pytest.raises(RuntimeError, match=r"engine .* put out 9 rows in place of 10"):
        measure.command(load, "engine")
    printed["rows"] = 10
    (tmp_path / "later.py").write_text(f"print({json.dumps(printed)!r})\n")
    assert measure.command(load, "later")["tuples_per_second"] == 10.0


def test_a_run_that_says_what_each_key_has_in_the_end_is_judged_by_that(tmp_path, monkeypatch):
    from bench.kit import measure
    from bench.workloads.loads import make

    monkeypatch.setattr(measure, "ROOT", tmp_path)
    load = make("records", 50, tmp_path).again(3)
    right = load.final()
    assert sum(right.values()) % 2 == 0

    def command(final):
        printed = {"rows": 1, "first": 1.0, "last": 2.0, "final": final, "steady": {"tuples": 90, "seconds": 3.0}}
        # A name of its own each time: what was compiled a moment ago is taken for what is written now.
        name = f"engine{len(list(tmp_path.glob('engine*.py')))}"
        (tmp_path / f"{name}.py").write_text(f"print({json.dumps(printed)!r})\n")
        return measure.command(load, name)

    run = command(right)
    assert run["tuples_per_second"] == 30.0
    assert "final" not in run
    key = min(right)
    with pytest.raises(
        RuntimeError, match=rf"ended with {right[key] + 2} for {key} in place of {right[key]}, and 1 keys"
    ):
        command({**right, key: right[key] + 2})
    with pytest.raises(RuntimeError, match=rf"ended with None for {key} in place of"):
        command({other: value for other, value in right.items() if other != key})
    with pytest.raises(RuntimeError, match=r"ended with 1 for nobody in place of None"):
        command({**right, "nobody": 1})


def test_a_steady_rate_needs_something_to_measure():
    from bench.kit.steady import steady

    assert steady(30, 1.0, 4.0) == {"tuples": 30, "seconds": 3.0}
    for tuples, ended in ((0, 4.0), (30, 1.0)):
        with pytest.raises(ValueError, match="take a larger load"):
            steady(tuples, 1.0, ended)


def test_a_run_that_fails_shows_what_it_said(tmp_path, monkeypatch):
    from bench.kit import measure
    from bench.workloads.loads import make

    (tmp_path / "engine.py").write_text("raise SystemExit('no memory left')\n")
    monkeypatch.setattr(measure, "ROOT", tmp_path)
    with pytest.raises(RuntimeError, match="engine .* failed:\nno memory left"):
        measure.command(make("sentences", 1, tmp_path), "engine")


@pytest.mark.skipif(sys.platform != "linux", reason="PSS is Linux's")
def test_memory_is_that_of_a_process_and_its_descendants():
    import os

    from bench.kit.measure import pss

    assert pss(os.getpid()) > 2**20
    assert pss(2**30) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_who_stops_a_bench_stops_what_it_runs_and_what_that_started(tmp_path, monkeypatch):
    import subprocess

    import psutil

    from bench.kit import measure

    # deaf to SIGTERM, as its child is
    (tmp_path / "engine.py").write_text(
        "import signal, subprocess, sys\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE)\n"
        "print(child.pid, flush=True)\n"
        "child.wait()\n"
    )
    monkeypatch.setattr(measure, "ROOT", tmp_path)
    communicate = subprocess.Popen.communicate
    pids = []

    def interrupted(process, **options):
        if not pids:
            pids.extend((process.pid, int(process.stdout.readline())))
            raise KeyboardInterrupt
        return communicate(process, **options)

    monkeypatch.setattr(subprocess.Popen, "communicate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        measure.launch("engine")
    for pid in pids:
        assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
