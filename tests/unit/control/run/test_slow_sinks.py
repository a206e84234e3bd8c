from __future__ import annotations

from collections import deque
from types import SimpleNamespace

import pytest

from esault.control.run.slow_sinks import PATIENCE, SlowSinks
from esault.messages.status import Status, SubUnitCounts


def told(reports, draining=True, phase="running"):
    """What the user hears where these reports come: (seconds, sub-unit, rows landed, sinks that are waited for)."""
    driver = SimpleNamespace(draining=draining, phase=phase, notices=deque())
    sinks = SlowSinks(driver)
    for now, incarnation, landed, waiting in reports:
        sinks.handle(Status(incarnation, now, SubUnitCounts(), landed=landed, waiting_sinks=waiting), now)
    return list(driver.notices)


STUCK = [(1.0, 7, {"away": 3, "near": 9}, ("away",)), (1.0 + PATIENCE, 7, {"away": 3, "near": 9}, ("away",))]


def test_a_sink_that_takes_nothing_while_the_run_ends_is_named_once():
    again = (2.0 + PATIENCE, 7, {"away": 3, "near": 9}, ("away",))
    other = (3.0 + PATIENCE, 8, {"away": 0}, ("away",))
    (line,) = told([*STUCK, again, other, (9.0 + 2 * PATIENCE, 8, {"away": 0}, ("away",))])
    assert line == (
        "the end waits for sink 'away', which has taken nothing for 5 s: see that its server answers, or end at once "
        "(again Ctrl-C, or esault stop --now)"
    )


@pytest.mark.parametrize(
    "between",
    [(3.0, 7, {"away": 4}, ("away",)), (3.0, 7, {"away": 3}, ())],
    ids=["rows have landed", "its hooks were done"],
)
def test_a_sink_that_goes_on_is_not_named(between):
    (now, incarnation, landed, _) = between
    assert not told([STUCK[0], between, (now + PATIENCE - 0.1, incarnation, landed, ("away",))])
    assert told([STUCK[0], between, (now + PATIENCE, incarnation, landed, ("away",))])


@pytest.mark.parametrize("about", [{"draining": False}, {"phase": "stopping"}])
def test_none_is_named_but_while_the_run_drains(about):
    assert not told(STUCK, **about)
