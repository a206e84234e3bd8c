"""Which configuration is best: formulas (1) to (4) of the paper."""

from __future__ import annotations

import pytest

from esault.elasticity.policies.orientstream.configuration import (
    Configuration,
    Node,
    Prediction,
    choose,
    query_latency,
    source_latency,
)

SMALL, MIDDLE, LARGE = (Configuration((("a", n), ("b", 1))) for n in (1, 2, 4))


def prediction(latency, throughput, cpu=0.5, memory=0.5):
    return Prediction((Node(cpu, memory),), latency, throughput)


def test_of_those_that_are_good_enough_the_one_of_least_use():
    found = {
        LARGE: prediction(0.1, 500, cpu=0.9),
        MIDDLE: prediction(0.2, 400, cpu=0.5),
        SMALL: prediction(0.9, 100, cpu=0.1),
    }
    choice = choose(found, latency=0.5, throughput=300)
    assert (choice.configuration, choice.prediction, choice.feasible) == (MIDDLE, found[MIDDLE], True)
    # at the thresholds none is good enough
    assert choose(found, latency=0.2, throughput=300).configuration == LARGE
    assert choose(found, latency=0.5, throughput=400).configuration == LARGE


def test_processors_and_memory_are_weighed():
    found = {SMALL: prediction(0.1, 9, 0.2, 0.9), LARGE: prediction(0.1, 9, 0.8, 0.1)}
    assert choose(found, 1.0, 1.0, alpha=0.9, beta=0.1).configuration == SMALL
    assert choose(found, 1.0, 1.0, alpha=0.1, beta=0.9).configuration == LARGE
    assert Prediction((Node(0.2, 0.4), Node(0.6, 0.8)), 0, 0).use(0.5, 0.25) == pytest.approx(0.7)


def test_where_none_is_good_enough_the_fastest_and_of_these_the_one_that_does_most():
    found = {SMALL: prediction(0.9, 300), MIDDLE: prediction(0.8, 200), LARGE: prediction(0.8, 250, cpu=1.0)}
    choice = choose(found, latency=0.5, throughput=100)
    assert (choice.configuration, choice.feasible) == (LARGE, False)


def test_latencies_are_means_over_instances_and_the_largest_of_the_sources():
    assert source_latency([1.0, 2.0, 6.0]) == 3.0
    assert query_latency([1.0, 3.0, 2.0]) == 3.0
    assert query_latency([]) == 0.0


def test_a_configuration_says_its_widths():
    assert str(LARGE) == "a 4, b 1"
    assert LARGE.parallelism == 5
