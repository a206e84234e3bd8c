"""Rows in the terminal: each as it comes, so many at most, in whatever process they are."""

from __future__ import annotations

import re

import pytest

from esault import Topology, run
from esault.errors import SinkError
from esault.sinks import Print
from esault.sources import Items
from esault.topology.sink import Row

ROWS = [("cat", 1), ("dog", 2), ("cat", 3)]


def written(sink, capsys):
    sink.write([Row(key, value, 0.0) for key, value in ROWS[:2]])
    sink.write_columns(["cat"], [3], 0.0, None)
    return capsys.readouterr().out


def test_each_row_is_a_line(capsys):
    assert written(Print(), capsys) == "cat 1\ndog 2\ncat 3\n"
    assert written(Print("seen:"), capsys) == "seen: cat 1\nseen: dog 2\nseen: cat 3\n"


@pytest.mark.parametrize(("limit", "lines"), [(0, 0), (1, 1), (2, 2), (9, 3)])
def test_no_more_than_the_limit(capsys, limit, lines):
    assert written(Print(limit=limit), capsys).count("\n") == lines


@pytest.mark.parametrize("options", [{"limit": -1}, {"limit": True}, {"limit": 1.5}, {"label": 3}])
def test_what_it_cannot_use_is_refused(options):
    with pytest.raises(SinkError, match=rf"Print\({next(iter(options))}="):
        Print(**options)


def topology():
    t = Topology("printed")
    t.spout("in", Items(ROWS)).reduce("count", lambda a, b: a + b, initial=0).sink("out", Print("now"))
    return t


@pytest.mark.parametrize(("engine", "mark"), [("local", ""), ("actors", r"\[count/\d+\] ")])
def test_a_run_shows_them(engine, mark, capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(topology, engine=engine)
    out = capfd.readouterr().out
    for line in ("now cat 1", "now dog 2", "now cat 4"):
        assert re.search(f"^{mark}{line}$", out, re.M)
