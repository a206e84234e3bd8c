"""The choice of a running topology, also while it starts."""

from __future__ import annotations

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
    monkeypatch.setattr(control_client, "living_run_dirs", lambda: ["its folder"])
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
    with pytest.raises(UsageError, match="no topology is running"):
        choose("words", clock.wait, clock.now)
    assert clock.time < control_client.PATIENCE + 1


def test_where_nothing_is_starting_it_is_said_at_once(monkeypatch, clock):
    monkeypatch.setattr(control_client, "running", answers(clock, 0))
    with pytest.raises(UsageError, match="no running topology is named 'other'; there are: words"):
        choose("other", clock.wait, clock.now)
    assert clock.time == 0
