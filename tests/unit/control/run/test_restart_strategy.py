"""Restart strategies, in Flink's words: how often, and how long after a failure."""

from __future__ import annotations

import pytest

from esault import UsageError
from esault.control.run.restart_strategy import strategy_of


def waits(text, times, exactly=True):
    strategy = strategy_of(text, exactly)
    return [strategy.delay(now) for now in times]


def test_none_restarts_nothing_and_is_what_there_is_without_checkpoints():
    assert waits("none", [0.0]) == [None]
    assert waits("", [0.0], exactly=False) == [None]


def test_fixed_delay_restarts_so_often_after_so_long():
    assert waits("fixed-delay:attempts=2,delay=5", [0, 100, 200]) == [5.0, 5.0, None]


def test_failure_rate_counts_what_failed_within_the_interval():
    times = [0, 10, 70, 75, 80]
    assert waits("failure-rate:failures=2,interval=60,delay=1", times) == [1.0, 1.0, 1.0, 1.0, None]


def test_exponential_delay_waits_ever_longer_and_begins_anew_after_a_good_while():
    times = [0, 1, 3, 6, 200, 201]
    text = "exponential-delay:initial=1,factor=2,most=4,attempts=5,reset=60"
    assert waits(text, times) == [1.0, 2.0, 4.0, 4.0, 1.0, 2.0]
    assert waits("exponential-delay:attempts=1", [0, 1]) == [0.5, None]
    assert strategy_of("", True).name == "exponential-delay"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("fixed", "there is no restart strategy 'fixed': it is none, fixed-delay, failure-rate, exponential-delay"),
        ("fixed-delay:attempts=1.5", "'attempts=1.5' will not do; parameters of fixed-delay are: attempts=3, delay=1"),
        ("fixed-delay:dealy=1", "'dealy=1' will not do"),
        ("fixed-delay:delay=-1", "'delay=-1' will not do"),
        ("none:delay=1", "parameters of none are: none"),
    ],
)
def test_what_cannot_be_is_refused_with_what_can(text, why):
    with pytest.raises(UsageError) as refused:
        strategy_of(text, True)
    assert why in str(refused.value)
