"""The sweep: what is on the front of all, who beats `auto`, and that a sweep that was ended goes on."""

from __future__ import annotations

import json

import pytest

from esault.elasticity.policy import make
from esault.sim.load_shapes import Steps


# What these import reads the departures of three months: half a second, for no worker but one.
@pytest.fixture(scope="module")
def compare():
    from bench.policies import compare

    return compare


@pytest.fixture(scope="module")
def sweep():
    from bench.policies import sweep

    return sweep


def row(policy, p99, workers, seed=1, unread=0.0):
    figures = {"p99_ms": p99, "workers": workers, "unread": unread}
    return {"load": "steps", "model": "count", "policy": policy, "seed": seed, "share": 1.0, **figures}


def test_every_configuration_is_one_that_there_is(sweep):
    for name, specs in sweep.GRID.items():
        assert len(set(specs)) == len(specs)
        for spec in specs:
            assert name == "fixed" or make(spec) is not None


def test_every_case_has_its_load_and_its_model(compare, sweep):
    assert len(set(sweep.CASES)) == len(sweep.CASES)
    assert {load for load, _ in sweep.CASES} == set(compare.LOADS)
    for load, model in sweep.CASES:
        names = [operator.name for operator in compare.MODELS[model](15)]
        assert names == (["count"] if model not in ("chain", "wanders") else ["parse", "count", "join"]), load


def test_the_front_and_who_beats_auto(sweep):
    rows = [row("auto", 100, 5, seed) for seed in (1, 2, 3)]
    rows += [row("quick and dear", 50, 9, seed) for seed in (1, 2, 3)]
    rows += [row("better", p99, 4.5, seed) for seed, p99 in enumerate((80, 90, 200), 1)]
    rows += [row("fell behind", 10, 1, seed, unread=1e6) for seed in (1, 2, 3)]
    rows += [row("looked good once", 1, 1)]
    (found,) = sweep.fronts({"rows": rows})
    assert found["front"] == ["quick and dear", "better"]
    assert found["beat auto"] == ["better"]
    text = "\n".join(sweep.sweep_lines({"rows": rows, "seeds": 3}))
    assert "on 0 of 1" in text
    assert "better BEATS auto" in text
    assert "looked good once" not in text


def test_equal_to_one_per_cent_is_equal(compare):
    points = {"auto": (100.0, 5.0), "equal": (99.5, 4.99), "cheaper": (100.0, 4.9), "dearer": (90.0, 5.1)}
    assert compare.beaten_by("auto", points) == ["cheaper"]


def test_a_sweep_that_was_ended_goes_on(compare, sweep, tmp_path, monkeypatch):
    monkeypatch.setattr(sweep, "CASES", [("steps", "count")])
    monkeypatch.setattr(sweep, "GRID", {"auto": ("auto",), "fixed": ("fixed peak",)})
    loads = {"steps": (Steps((0.0, 1.0), (500.0, 1000.0), 2.0), 8.0)}
    monkeypatch.setattr(compare, "LOADS", loads)
    monkeypatch.setattr(sweep, "LOADS", loads)
    first = sweep.sweep(tmp_path, False, 2, 1.0)
    lines = (tmp_path / "sweep.jsonl").read_text().splitlines()
    assert {(r["policy"], r["seed"]) for r in map(json.loads, lines)} >= {("auto", 1), ("auto", 2), ("fixed peak", 1)}
    (tmp_path / "sweep.jsonl").write_text(lines[0] + "\n")
    again = sweep.sweep(tmp_path, False, 2, 1.0)

    def shown(result):
        return sorted((r["policy"], r["seed"], r["p99_ms"], r["workers"]) for r in result["rows"])

    assert shown(again) == shown(first)
    assert (tmp_path / "sweep.jsonl").read_text().splitlines()[0] == lines[0]
    assert first["rows"][0]["p99_ms"] == pytest.approx(again["rows"][0]["p99_ms"])
