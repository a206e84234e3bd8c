"""The choice of a running topology, also while it starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from esault.errors import UsageError
from esault.runtime.session import control_client
from esault.runtime.session.control_client import Running, choose


class Clock:
    """Goes on as it is waited by, and calls what is due then."""

    def __init__(self):
        self.time = 0.0

    def wait(self, seconds):
        self.time += seconds

    def now(self):
        return self.time


@pytest.fixture
def clock(monkeypatch):
    """A clock, beside a run whose folder is there from the start."""
    monkeypatch.setattr(control_client, "living_run_dirs", lambda: [Path("1")])
    monkeypatch.setattr(control_client, "name_of", lambda folder: ("words", folder.name))
    monkeypatch.setattr(control_client, "any_begins", lambda: False)
    return Clock()


def answers(clock, after):
    words = Running("socket", {"topology": "words", "run": "1"})
    return lambda: [words] if clock.time >= after else []


def test_a_run_that_is_starting_is_waited_for(monkeypatch, clock):
    monkeypatch.setattr(control_client, "running", answers(clock, 3))
    assert choose("words", clock.wait, clock.now).name == "words"
    assert 3 <= clock.time < 3.1


def test_not_for_ever(monkeypatch, clock):
    monkeypatch.setattr(control_client, "running", answers(clock, 1e9))
    with pytest.raises(UsageError, match=r"words \(1\) does not answer just now: it is starting"):
        choose("words", clock.wait, clock.now)
    assert clock.time < control_client.PATIENCE + 1
    monkeypatch.setattr(control_client, "living_run_dirs", list)
    with pytest.raises(UsageError, match="no topology is running"):
        choose("words", clock.wait, clock.now)


def test_where_nothing_is_starting_it_is_said_at_once(monkeypatch, clock):
    monkeypatch.setattr(control_client, "running", answers(clock, 0))
    with pytest.raises(UsageError, match="no running topology is named 'other'; there are: words"):
        choose("other", clock.wait, clock.now)
    assert clock.time == 0


@pytest.mark.parametrize("name", [None, "words"])
def test_one_that_answers_is_not_taken_for_another_one_that_may_be_meant_and_does_not(monkeypatch, clock, name):
    monkeypatch.setattr(control_client, "running", answers(clock, 0))
    monkeypatch.setattr(control_client, "living_run_dirs", lambda: [Path("1"), Path("2")])
    with pytest.raises(
        UsageError, match=r"several .*: words \(1\), words \(2, which does not .*; say which with --run"
    ):
        choose(name, clock.wait, clock.now)
    assert control_client.PATIENCE <= clock.time < control_client.PATIENCE + 1
    assert choose("1", clock.wait, clock.now).run == "1"  # no other one is meant
    clock.time = 0
    monkeypatch.setattr(
        control_client, "living_run_dirs", lambda: [Path("1"), Path("2")] if clock.time < 1 else [Path("1")]
    )
    assert choose(name, clock.wait, clock.now).run == "1"  # the other one was ending


def test_processes_of_another_hosts_run_are_none_that_is_waited_for(monkeypatch, clock):
    monkeypatch.setattr(control_client, "running", list)
    monkeypatch.setattr(control_client, "name_of", lambda folder: None)
    with pytest.raises(UsageError, match="no topology is running"):
        choose(None, clock.wait, clock.now)
    assert clock.time == 0
