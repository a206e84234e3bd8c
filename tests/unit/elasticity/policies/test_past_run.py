"""What an earlier run has learnt: plain values that go on where they were, and nothing that cannot be read."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from esault.elasticity.estimators.load_history import LoadHistory
from esault.elasticity.policies.past_run import PastRun


def rhythm(seconds=120):
    history = LoadHistory()
    for second in range(seconds):
        history.add(1000.0 if second % 10 < 5 else 100.0, 1.0)
    return history


def source(history, until=500.0):
    return SimpleNamespace(history=history, until=until)


def learnt():
    idle = SimpleNamespace(snapshot=lambda: [[1, 2.5], [3, 4]])
    return json.loads(json.dumps(PastRun.learnt({"read": source(rhythm())}, {"count": idle})))


def test_a_forecast_goes_on_from_what_is_known_with_the_time_in_between():
    past = PastRun(learnt())
    now = source(LoadHistory())
    past.tell("read", now, 500.0)
    assert now.history.period == 10.0
    assert now.history.foretold(0.0, 1.0) == rhythm().foretold(0.0, 1.0)
    past.tell("read", now, 505.0)
    assert now.history.foretold(0.0, 1.0) == pytest.approx(rhythm().foretold(5.0, 6.0))


def test_of_what_is_not_known_nothing_is_told():
    past = PastRun(learnt())
    for name, at in (("other", 600.0), ("read", 499.0)):  # a clock that went back
        history = LoadHistory()
        now = source(history)
        past.tell(name, now, at)
        assert now.history is history
    assert PastRun().idle("count") == []
    assert past.idle("other") == []
    assert past.idle("count") == [(1, 2.5), (3, 4.0)]


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"sources": {}},
        {"sources": {"read": {"until": 1.0}}, "idle": {}},
        {"sources": {"read": {"until": 1.0, "history": {"bin_seconds": 1.0, "resolutions": []}}}, "idle": {}},
        {"sources": {}, "idle": {"count": [["a", 1.0]]}},
        {"sources": {}, "idle": {"count": [1]}},
    ],
)
def test_what_cannot_be_read_is_found_before_the_run_begins(broken):
    with pytest.raises((KeyError, TypeError, ValueError)):
        PastRun(broken)
