"""Which words of `esault state` are a run, a unit and a key."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from esault.cli.main import main
from esault.runtime.session.control_client import Running

RUNS = [
    ("words", "20261126-1", ("split", "count")),
    ("count", "20261126-2", ("sum",)),  # called like a unit of the other one
    ("shop", "20261127-3", ("price",)),
]


@pytest.fixture
def asked(monkeypatch):
    found = [
        Running(Path(name), {"topology": name, "run": run, "units": [{"name": unit} for unit in units]})
        for name, run, units in RUNS
    ]
    monkeypatch.setattr("esault.runtime.session.control_client.running", lambda: found)
    monkeypatch.setattr("esault.runtime.session.control_client.RemoteRun", lambda address: Path(address))
    asked = []

    def ask(place, request, patience=None):
        if request["do"] == "status":
            return iter([{"topology": "far", "run": "r", "units": []}])
        asked.append((str(place), request["unit"], request["key"]))
        return iter([{"begun": True}, {"keys": 1, "found": [{"key": "cat", "state": {"n": 3}}]}])

    monkeypatch.setattr("esault.runtime.session.control_client.ask", ask)
    return asked


def call(*words):
    with pytest.raises(SystemExit) as ended:
        main(["state", *words])
    return ended.value.code


@pytest.mark.parametrize(
    "words, meant",
    [
        (("shop", "price", "cat"), ("shop", "price", "cat")),
        (("20261127", "price", "cat"), ("shop", "price", "cat")),
        (("shop", "price"), ("shop", "price", "")),
        (("--run", "words", "count", "cat"), ("words", "count", "cat")),
        (("--run", "words", "count"), ("words", "count", "")),
        (("--run", "shop", "shop", "price"), ("shop", "shop", "price")),
        (("shop", "price", ""), ("shop", "price", '""')),
        (("10.0.0.2:7500", "count"), ("10.0.0.2:7500", "count", "")),
        (("10.0.0.2:7500", "count", "7"), ("10.0.0.2:7500", "count", "7")),
    ],
)
def test_a_run_may_stand_in_front_or_behind_its_option(asked, words, meant):
    assert (call(*words), asked) == (0, [meant])


def test_two_words_are_a_unit_and_a_key_where_a_unit_is_called_like_the_first(asked, capsys):
    assert call("count", "sum") == 2  # several run, and none is named
    assert "several topologies are running" in capsys.readouterr().err
    assert call("count", "sum", "cat") == 0
    assert asked == [("count", "sum", "cat")]


@pytest.mark.parametrize("words", [("a", "b", "c", "d"), ("--run", "words", "words", "count", "cat")])
def test_too_many_words_are_refused(asked, words, capsys):
    assert call(*words) == 2
    assert "UNIT [KEY]" in capsys.readouterr().err and asked == []


def test_it_says_that_it_is_the_newest(asked, capsys):
    call("shop", "price")
    assert capsys.readouterr().out == 'cat\t{"n": 3}\n1 of 1 key, as they are now\n'
    call("shop", "price", "--json")
    assert json.loads(capsys.readouterr().out) == {
        "of": "newest",
        "keys": 1,
        "found": [{"key": "cat", "state": {"n": 3}}],
    }
