"""For how long no sub-unit of a unit has answered a probe."""

from __future__ import annotations

from esault.elasticity.estimators.unanswered import Unanswered
from esault.elasticity.view import ProbeSample, Sample


def sample(number, *probes, age=0.0):
    return Sample(number, age=age, probes=tuple(ProbeSample(*probe) for probe in probes))


def test_where_nothing_is_known_nothing_is_unanswered():
    assert Unanswered().seconds(5.0) == 0.0


def test_it_counts_from_the_last_answer_and_before_that_from_the_start():
    unanswered = Unanswered()
    unanswered.observe([sample(1, age=0.5)], 10.5)  # at its first tuple since before the first probe
    unanswered.observe([sample(1, (2, 10.1), age=1.0)], 11.0)
    assert unanswered.seconds(12.0) == 2.0
    unanswered.observe([sample(1, (1, 10.0, 12.5), (2, 10.1, 12.5), age=3.0)], 13.0)
    assert unanswered.seconds(13.0) == 0.5


def test_one_that_answers_is_enough():
    unanswered = Unanswered()
    unanswered.observe([sample(1, (1, 10.0)), sample(2, (1, 10.0))], 10.0)
    unanswered.observe([sample(1), sample(2, (2, 14.0, 14.01))], 14.25)
    assert unanswered.seconds(14.01) == 0.0
    unanswered.observe([sample(1)], 14.5)  # the other has left
    assert unanswered.seconds(15.0) == 5.0
