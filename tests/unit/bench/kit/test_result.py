from __future__ import annotations

import json
import sys

import pytest


def _write(folder):
    from bench.kit.result import Bar, write

    write(str(folder), {"bench": "x"}, ["a line"], {"A": [Bar("esault", 2.0, 1.0, 4.0)]}, "million/s")


def test_a_result_is_data_a_table_and_a_plot(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    _write(tmp_path / "out")
    assert json.loads((tmp_path / "out" / "result.json").read_text()) == {"bench": "x"}
    assert (tmp_path / "out" / "result.txt").read_text() == "a line\n"
    assert (tmp_path / "out" / "result.png").read_bytes().startswith(b"\x89PNG")
    assert "a line" in capsys.readouterr().out


def test_without_matplotlib_the_result_is_there_and_the_lack_of_a_plot_is_said(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    _write(tmp_path)
    assert (tmp_path / "result.json").is_file()
    assert not (tmp_path / "result.png").exists()
    assert "matplotlib is not installed" in capsys.readouterr().out


def test_what_was_measured_on_is_in_every_result():
    from bench.kit.machine import facts

    found = facts()
    assert found["cores"] >= 1
    assert found["packages"]["esault"]
    assert {"processor", "memory_gib", "system", "python", "load_at_start", "commit"} <= set(found)


def test_runs_of_before_count_and_no_seed_does_twice(tmp_path):
    from bench.kit.result import runs_before

    assert runs_before(str(tmp_path), "kills", 1) == []
    (tmp_path / "result.json").write_text(json.dumps({"kills": [{"seed": 1, "kills": 9}]}))
    assert runs_before(str(tmp_path), "kills", 2) == [{"seed": 1, "kills": 9}]
    assert runs_before(str(tmp_path), "cluster", 1) == []
    with pytest.raises(SystemExit, match="seed 1 is counted there already"):
        runs_before(str(tmp_path), "kills", 1)
