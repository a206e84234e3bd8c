"""The regression guard finds a loss, and only a loss."""

from __future__ import annotations

import functools
import gc
import json
import subprocess
import sys
from dataclasses import replace

import pytest

MACHINE = {"python": "CPython 3.11.7", "packages": {"msgpack": "1.1.0"}}


def _workload(name):
    """Small, but so large that one call more, such as of what happens now and then, is below what counts as a loss."""
    from bench.smoke.workloads import WORKLOADS

    return replace(next(each for each in WORKLOADS if each.name == name), warm=128, more=1024)


def _in_esault(source, **names):
    """A function as if it stood in eSault: what others define is not counted."""
    namespace = {"__name__": "esault.flow.slower", **names}
    exec(source, namespace)
    return namespace


def _baseline(counts):
    return {
        "workloads": {name: each.figures for name, each in counts.items()},
        "functions": {name: each.functions for name, each in counts.items()},
        "ratios": {},
    }


def _verdicts(before, after):
    from bench.smoke.baseline import compare

    lines = compare(_baseline({"A": before}), {"A": after.figures}, {})
    return {line.what: line.verdict for line in lines}


def _count():
    """Of the code as it is. A collection of garbage in between forgets what is looked up then once more, and a class of values is
    compiled when there have been some objects of it in the process: which of two counts that is in, tests before decide."""
    from bench.smoke.counts import count
    from esault import value_class

    _workload("A").run(_workload("A").rows(128))  # what it imports
    for each in tuple(value_class._uncompiled):
        value_class._compile(each)
    gc.collect()
    gc.disable()
    try:
        return count(_workload("A"))
    finally:
        gc.enable()


@functools.cache
def _counts():
    """The same, once."""
    return _count()


@pytest.fixture(autouse=True)
def _no_class_is_forgotten(monkeypatch):
    """What is known of classes is forgotten all at once: a run in which that happens has more to do."""
    from esault.payload import attributes

    monkeypatch.setattr(attributes, "_MOST_KNOWN", 1 << 30)


@pytest.fixture
def unchanged(_checkout):
    return _counts()


def test_the_same_code_counts_the_same(unchanged):
    again = _count()
    assert again.functions == pytest.approx(unchanged.functions, abs=0.01)
    exact = ("bytecodes", "Python calls", "C calls")
    # A look at the clock more or less, on a busy machine, is one call in a thousand rows.
    wanted = {what: pytest.approx(unchanged.figures[what], rel=1e-3) for what in exact}
    assert {what: again.figures[what] for what in exact} == wanted
    assert set(_verdicts(unchanged, again).values()) == {"same"}


def test_a_python_call_more_for_each_row_that_is_routed_is_a_loss_and_named(unchanged, monkeypatch):
    from bench.smoke.baseline import grown
    from bench.smoke.counts import count
    from esault.flow.send.route import KeyRoute

    slower = _in_esault(
        "def seen(key):\n    pass\n"
        "def push(self, lineage, keys, values, ids, now):\n"
        "    for key in keys:\n        seen(key)\n"
        "    real(self, lineage, keys, values, ids, now)\n",
        real=KeyRoute.push,
    )
    monkeypatch.setattr(KeyRoute, "push", slower["push"])
    found = count(_workload("A"))
    assert _verdicts(unchanged, found) == {
        "bytecodes": "LOSS",
        "Python calls": "LOSS",
        "C calls": "same",
        "peak memory": "same",
    }
    names = [name for name, _ in grown(_baseline({"A": unchanged}), "A", found.functions)]
    assert set(names) == {"esault.flow.slower:push", "esault.flow.slower:seen"}


def test_a_metric_for_each_tuple_in_place_of_each_batch_is_a_loss(unchanged, monkeypatch):
    from bench.smoke.counts import count
    from esault.flow.send.route import KeyRoute
    from esault.histogram import Histogram

    slower = _in_esault(
        "def push(self, lineage, keys, values, ids, now):\n"
        "    for key in keys:\n        histogram.record(0.001, 1)\n"
        "    real(self, lineage, keys, values, ids, now)\n",
        real=KeyRoute.push,
        histogram=Histogram(),
    )
    monkeypatch.setattr(KeyRoute, "push", slower["push"])
    found = count(_workload("A"))
    assert _verdicts(unchanged, found)["bytecodes"] == "LOSS"

    def recorded(counts):  # Python 3.10 knows a function's name without its class's
        return sum(
            n
            for name, n in counts.functions.items()
            if name in ("esault.histogram:Histogram.record", "esault.histogram:record")
        )

    assert recorded(found) > recorded(unchanged)


def test_a_c_call_for_each_tuple_is_a_loss(unchanged, monkeypatch):
    from bench.smoke.counts import count
    from esault.flow.send.route import KeyRoute

    slower = _in_esault(
        "def push(self, lineage, keys, values, ids, now):\n"
        "    for key in keys:\n        len(key)\n"
        "    real(self, lineage, keys, values, ids, now)\n",
        real=KeyRoute.push,
    )
    monkeypatch.setattr(KeyRoute, "push", slower["push"])
    assert _verdicts(unchanged, count(_workload("A")))["C calls"] == "LOSS"


def test_what_is_kept_for_each_tuple_is_a_loss_of_memory(unchanged, monkeypatch):
    from bench.smoke.counts import count
    from esault.flow.send.route import KeyRoute

    kept = []
    real = KeyRoute.push

    def push(self, lineage, keys, values, ids, now):
        kept.extend((key, value) for key, value in zip(keys, values))
        real(self, lineage, keys, values, ids, now)

    monkeypatch.setattr(KeyRoute, "push", push)
    assert _verdicts(unchanged, count(_workload("A")))["peak memory"] == "LOSS"


def test_code_outside_of_the_data_path_is_not_counted(unchanged):
    assert unchanged.functions
    for name in unchanged.functions:
        assert name.startswith(("esault.", "namedtuple_"))
        assert not name.startswith(("esault.testing", "esault.control"))


@pytest.mark.parametrize("name", ["A", "A, table", "B", "B, large roots", "B, checkpoints", "B, new keys"])
def test_a_workload_puts_out_what_it_must(name):
    workload = _workload(name)
    if workload.missing:
        pytest.skip(workload.missing)
    checkpoints = workload.run(workload.rows(workload.warm + workload.more))
    assert bool(checkpoints) == (name == "B, checkpoints")


def test_a_workload_that_loses_rows_is_no_result():
    workload = replace(_workload("B"), results=len)
    with pytest.raises(RuntimeError, match="workload B: .* rows came out in place of 128"):
        workload.run(workload.rows(128))


def test_tracers_that_were_there_before_are_back_afterwards():
    from bench.smoke.counts import Bytecodes, Calls

    before = sys.gettrace(), sys.getprofile()
    for _ in range(8):  # places for tools are given back
        with Bytecodes(), Calls():
            pass
    assert (sys.gettrace(), sys.getprofile()) == before


def _one(what, before, now):
    from bench.smoke.baseline import compare

    baseline = {"workloads": {"A": {} if before is None else {what: before}}, "functions": {}, "ratios": {}}
    (line,) = compare(baseline, {"A": {what: now}}, {})
    return line


@pytest.mark.parametrize(
    ("what", "before", "now", "verdict"),
    [
        ("bytecodes", 100.0, 102.9, "same"),
        ("bytecodes", 100.0, 103.1, "LOSS"),
        ("bytecodes", 100.0, 97.1, "same"),
        ("bytecodes", 100.0, 96.9, "gain"),
        ("bytecodes", 0.01, 0.05, "same"),  # next to nothing
        ("C calls", 0.001, 0.01, "LOSS"),
        ("peak memory", 100.0, 115.0, "same"),
        ("peak memory", 1000.0, 1031.0, "LOSS"),
        ("bytecodes", None, 1.0, "NEW"),
    ],
)
def test_a_figure_may_grow_by_three_per_cent(what, before, now, verdict):
    line = _one(what, before, now)
    assert line.verdict == verdict
    assert line.failed == (verdict in ("LOSS", "NEW"))


def test_a_version_without_a_baseline_is_compared_with_the_nearest_ones_ratio(tmp_path):
    from bench.smoke import baseline as smoke_baseline

    assert smoke_baseline.nearest("3.14", tmp_path) is None
    for of in ("3.9", "3.10", "3.12"):
        smoke_baseline.write(of, {"workloads": {}, "functions": {}, "ratios": {"A": 2.5}}, tmp_path)
    assert smoke_baseline.nearest("3.14", tmp_path) == "3.12"
    assert smoke_baseline.nearest("3.8", tmp_path) == "3.9"
    assert smoke_baseline.others("3.10", tmp_path) == ["3.9", "3.12"]
    assert smoke_baseline.read("3.14", tmp_path) is None


def test_what_is_written_is_what_is_read(tmp_path):
    from bench.smoke import baseline as smoke_baseline

    baseline = {
        "workloads": {"A": {"bytecodes": 1.23456}},
        "functions": {"A": {"f": 1.0, "g": 0.01}},
        "ratios": {"A": 2.0},
    }
    smoke_baseline.write("3.11", baseline, tmp_path)
    assert smoke_baseline.read("3.11", tmp_path) == {
        "workloads": {"A": {"bytecodes": 1.2346}},
        "functions": {"A": {"f": 1.0}},
        "ratios": {"A": 2.0},
    }


@pytest.mark.parametrize("text", ["", "{", "[]", '{"workloads": {}}'])
def test_a_file_that_is_no_baseline_is_refused_with_the_remedy(text, tmp_path):
    from bench.smoke import baseline as smoke_baseline

    (tmp_path / "baseline-3.11.json").write_text(text)
    with pytest.raises(ValueError, match=r"baseline-3.11.json is no baseline .*--renew"):
        smoke_baseline.read("3.11", tmp_path)


def test_another_environment_is_named_where_something_is_lost():
    from bench.smoke.baseline import elsewhere

    now = {"python": "CPython 3.11.9", "packages": {"msgpack": "1.1.0", "esault": "9"}}
    assert elsewhere({"machine": MACHINE}, now) == ["Python: CPython 3.11.7, now CPython 3.11.9"]
    assert elsewhere({"machine": MACHINE}, MACHINE) == []


def test_a_ratio_is_of_times_side_by_side_and_the_first_in_turn_changes():
    from bench.smoke.ratio import RATIOS, measure

    times = iter([2.0, 5.0, 6.0, 3.0])  # loop, engine; engine, loop

    def timed(call):
        return next(times)

    assert measure(RATIOS[0], 2, timed) == [2.5, 2.0]


def test_a_ratio_above_the_limit_is_measured_again_and_the_least_counts(monkeypatch):
    from bench.smoke import ratio as smoke_ratio

    found = iter([[9.0, 3.0, 3.0], [2.0, 2.2, 2.1], [1.0]])
    monkeypatch.setattr(smoke_ratio, "measure", lambda workload, rounds: next(found))
    assert smoke_ratio.least_middle(smoke_ratio.RATIOS[0], 3, 2.5) == 2.1
    found = iter([[3.0], [2.8], [2.9], [1.0]])
    assert smoke_ratio.least_middle(smoke_ratio.RATIOS[0], 1, 2.5) == 2.8


def _line(what, before, now, verdict, **more):
    from bench.smoke.baseline import Line

    return Line("A", what, before, now, verdict, **more)


def test_what_is_lost_is_said_with_where_and_with_the_remedy(unchanged):
    from bench.smoke.__main__ import _says

    baseline = {**_baseline({"A": unchanged}), "functions": {"A": {}}, "machine": MACHINE}
    text = "\n".join(_says([_line("bytecodes", 10.0, 12.0, "LOSS")], {"A": unchanged}, baseline, MACHINE))
    assert "LOSS: A: bytecodes 10.00 -> 12.00 (+20.0%; up to 3% pass)" in text
    assert ": +" in text
    assert "--renew, and say why in the commit" in text


def test_what_is_better_is_to_be_kept(unchanged):
    from bench.smoke.__main__ import _says

    (text,) = _says([_line("C calls", 10.0, 5.0, "gain")], {"A": unchanged}, _baseline({"A": unchanged}), MACHINE)
    assert text.startswith("Better than the baseline: A. Renew it")


def _smoke_with(tmp_path, monkeypatch, capsys, baseline_of, *words):
    """`bench.smoke` with known counts and made-up ratios, baselines in `tmp_path`; its exit code and what it printed."""
    from bench.smoke import __main__ as smoke
    from bench.smoke import baseline as smoke_baseline

    monkeypatch.setattr(smoke_baseline, "FOLDER", tmp_path / "baselines")
    monkeypatch.setattr(smoke_baseline, "version", lambda: baseline_of)
    monkeypatch.setattr(smoke, "WORKLOADS", [_workload("A")])
    monkeypatch.setattr(smoke, "count", lambda workload: _counts())
    monkeypatch.setattr(smoke, "least_middle", lambda workload, rounds, limit: 2.0)
    monkeypatch.setattr(sys, "argv", ["smoke", *words])
    with pytest.raises(SystemExit) as caught:
        smoke.main()
    return caught.value.code, capsys.readouterr().out


def test_without_any_baseline_nothing_passes_and_a_renewed_one_does(tmp_path, monkeypatch, capsys):
    code, text = _smoke_with(tmp_path, monkeypatch, capsys, "3.11")
    assert code == 1
    assert "NO COUNT IS COMPARED. Nor is any ratio" in text
    code, text = _smoke_with(tmp_path, monkeypatch, capsys, "3.11", "--renew")
    assert code == 0
    assert "baseline-3.11.json is renewed; say in the commit why" in text
    code, text = _smoke_with(tmp_path, monkeypatch, capsys, "3.11", "--out", str(tmp_path / "out"))
    assert code == 0
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert result["passed"]
    assert {line["verdict"] for line in result["lines"]} == {"same"}


def test_another_pythons_baseline_gives_the_ratio_alone_and_that_is_said(tmp_path, monkeypatch, capsys):
    _smoke_with(tmp_path, monkeypatch, capsys, "3.11", "--renew")
    code, text = _smoke_with(tmp_path, monkeypatch, capsys, "3.14")
    assert code == 0
    assert "Python 3.14 has no baseline: NO COUNT IS COMPARED. The ratios alone decide, beside those of 3.11" in text
    _, text = _smoke_with(tmp_path, monkeypatch, capsys, "3.14", "--renew")
    assert "The baselines of 3.11 are as they were" in text


def test_the_help_says_what_is_compared_and_what_to_do():
    from pathlib import Path

    done = subprocess.run(
        [sys.executable, "-m", "bench.smoke", "--help"],
        cwd=Path(__file__).parents[4],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "--renew" in done.stdout
    assert "bare loop" in done.stdout
