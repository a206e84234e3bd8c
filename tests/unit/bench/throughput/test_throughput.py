from __future__ import annotations

import json
import sys

import pytest

from bench.peers.environments import Found


def _engine(rate, semantics="R", user_code="Python"):
    runs = [{"tuples_per_second": rate * factor} for factor in (0.5, 1.0, 2.0)]
    spread = {"median": rate, "least": rate / 2, "most": rate * 2}
    start = {"median": 0.5, "least": 0.4, "most": 0.6}
    return {
        "semantics": semantics,
        "user_code": user_code,
        "tuples_per_second": spread,
        "start_up_seconds": start,
        "pss_mib": 100.0,
        "runs": runs,
    }


def _engines():
    return {
        "esault": _engine(3e6),
        "bytewax, 1 worker": _engine(1e6),
        "esault, acks off": _engine(3.3e6),
        "bytewax, 2 processes": {"semantics": "R", "user_code": "Python", "missing": "skipped: it rained"},
        "esault, columns": _engine(8e6, "M", "Python, batches"),
        "pathway, 1 thread": {"semantics": "M", "user_code": "Python", "missing": "skipped: pathway is not installed"},
        "flink sql": _engine(4e6, "R", "none"),
    }


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("all", ("bytewax", "pathway", "flink", "spark")),
        ("none", ()),
        ("flink", ("flink",)),
        ("spark, bytewax", ("bytewax", "spark")),
    ],
)
def test_peers_are_named(text, groups):
    from bench.throughput.engines import chosen

    assert chosen(text) == groups


def test_a_peer_that_there_is_not_is_refused_with_the_names_there_are(monkeypatch, capsys):
    from bench.throughput import __main__ as throughput

    monkeypatch.setattr(sys, "argv", ["throughput", "--out", "x", "--peers", "storm"])
    with pytest.raises(SystemExit) as caught:
        throughput.main()
    assert caught.value.code == 2
    assert "'storm'; write all, none, or names of: bytewax, pathway, flink, spark" in capsys.readouterr().err


def test_ratios_are_against_bytewax_and_apart_from_it_against_every_other_peer():
    from bench.throughput.__main__ import _compared

    compared = _compared(_engines())
    assert compared["peer_best"] == "bytewax, 1 worker"
    assert list(compared["ratio_to_peer_best"]) == ["esault", "esault, acks off", "esault, columns"]
    assert compared["ratio_to_peer_best"]["esault"]["median"] == 3.0
    assert list(compared["ratio_to_others"]) == ["flink sql"]
    assert compared["ratio_to_others"]["flink sql"]["esault"]["median"] == 0.75
    assert compared["ratio_to_others"]["flink sql"]["esault, columns"]["median"] == 2.0


def test_the_table_says_for_every_engine_what_it_puts_out_and_where_user_code_runs():
    from bench.throughput.__main__ import _compared, _lines

    engines = _engines()
    text = "\n".join(_lines("A: words/s", engines, _compared(engines)))
    assert "pathway, 1 thread         M  Python          skipped: pathway is not installed" in text
    assert "flink sql                 R  none             4.000 M/s (2.000 to 8.000)" in text
    assert "against flink sql (R, user code: none): esault 0.75 x (0.75 to 0.75); esault, columns 2.00 x" in text
    assert "x: against bytewax, 1 worker, its best" in text


def test_colours_tell_ours_from_peers_with_python_in_the_loop_and_without():
    from bench.kit.result import COLOURS
    from bench.throughput.__main__ import _bars

    kinds = {bar.name: bar.kind for bar in _bars(_engines())}
    assert kinds == {
        "esault": "esault",
        "bytewax, 1 worker": "peer, user code in Python",
        "esault, acks off": "esault",
        "esault, columns": "esault",
        "flink sql": "peer, no Python in the loop",
    }
    assert len({COLOURS[kind] for kind in kinds.values()}) == 3


def test_every_engine_has_a_name_of_its_own_and_a_group_that_can_be_named():
    from bench.peers.environments import PEERS
    from bench.throughput.engines import ENGINES, GROUPS

    assert len({engine.name for engine in ENGINES}) == len(ENGINES)
    assert {engine.group for engine in ENGINES} == {None, *GROUPS}
    assert set(GROUPS) == {"bytewax", *PEERS}


def test_heavy_peers_that_are_missing_are_said_and_leave_the_others_alone(tmp_path, monkeypatch):
    from bench.throughput import __main__ as throughput
    from bench.workloads.loads import make

    ran = []

    def command(load, module, *arguments, weigh=False, python=sys.executable):
        ran.append((module, arguments[0], load.passes, python, weigh))
        return {"tuples_per_second": 1.0, "start_up_seconds": 0.5, "pss_mib": 9.0}

    monkeypatch.setattr(throughput, "command", command)
    monkeypatch.setattr(throughput, "missing", lambda package: None)
    load = make("records", 100_000, tmp_path)
    peers = {"flink": Found("/flink/python", {}), "pathway": "skipped: no pathway"}
    engines = throughput._group("sums", load, 2, ("bytewax", "pathway", "flink"), peers, 1)
    assert engines["pathway, 1 thread"]["missing"] == "skipped: no pathway"
    assert "spark" not in engines
    assert len(engines["esault"]["runs"]) == 2
    assert len(engines["flink sql"]["runs"]) == 1
    assert ("bench.peers.flink_flows", "sums", 5, "/flink/python", True) in ran
    assert ("bench.kit.esault_run", "sums_batch", 1, sys.executable, False) in ran
    assert engines["flink sql"]["load"]["count"] == 500_000


def test_one_workload_is_measured_anew_and_the_other_kept_with_when_it_was_measured(tmp_path, monkeypatch):
    from bench.throughput import __main__ as throughput

    earlier = {"machine": {"date": "before"}, "runs": 5, "A": _engines(), "B": _engines()}
    (tmp_path / "result.json").write_text(json.dumps(earlier))
    fresh = {**_engines(), "esault": _engine(4e6)}
    monkeypatch.setattr(throughput, "_group", lambda what, *rest: fresh if what == "sums" else pytest.fail(what))
    monkeypatch.setattr(
        sys, "argv", ["throughput", "--out", str(tmp_path), "--quick", "--scale", "0.001", "--only", "B"]
    )
    throughput.main()
    result = json.loads((tmp_path / "result.json").read_text())
    assert (result["A"], result["B"]) == (earlier["A"], fresh)
    assert result["kept"] == {"A": {"machine": {"date": "before"}, "runs": 5}}


def test_to_measure_one_alone_needs_a_result_of_the_other(tmp_path, monkeypatch):
    from bench.throughput import __main__ as throughput

    monkeypatch.setattr(sys, "argv", ["throughput", "--out", str(tmp_path), "--quick", "--only", "A"])
    with pytest.raises(SystemExit, match="has no result of the other workload"):
        throughput.main()
