from __future__ import annotations

from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from esault.cli.scale import command
from esault.runtime.session import control_client

RECORD = {"done": True, "before": 1, "after": 3, "seconds": 0.5, "moved_bytes": 1234, "held": 0.0021}


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        (7, "1 -> 3 sub-units in 0.50 s, 7 keys moved (1,234 bytes), no tuple held back longer than 2.1 ms"),
        (0, "1 -> 3 sub-units in 0.50 s"),
    ],
    ids=["a unit by key", "a unit without keys"],
)
def test_it_tells_of_keys_where_keys_moved(monkeypatch, keys, told):
    monkeypatch.setattr(control_client, "choose", lambda run: SimpleNamespace(name="words", control_socket="x"))
    monkeypatch.setattr(control_client, "ask", lambda *asked, **how: [{"begun": True}, {**RECORD, "moved_keys": keys}])
    result = CliRunner().invoke(command, ["split", "3"])
    assert result.output.splitlines() == ["words, split: to 3 sub-units ...", f"words, split: {told}"]


def test_a_long_change_says_how_far_it_is(monkeypatch):
    monkeypatch.setattr(control_client, "choose", lambda run: SimpleNamespace(name="words", control_socket="x"))
    lines = [{"begun": True}, {"moved": 12, "of": 50, "moved_keys": 24_576}, {**RECORD, "moved_keys": 7}]
    monkeypatch.setattr(control_client, "ask", lambda *asked, **how: lines)
    result = CliRunner().invoke(command, ["split", "3"])
    assert result.output.splitlines()[1] == "words, split: 24,576 keys moved, 12 of 50 subscales ..."
