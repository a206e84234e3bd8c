"""Histories of one register that can be explained, and such that cannot."""

from __future__ import annotations

import random

import pytest

from bench.simulation.tally import Operation, explained


def write(at, value, until=None):
    return Operation(at, at if until is None else until, True, value)


def read(at, until, value):
    return Operation(at, until, False, value)


@pytest.mark.parametrize(
    ("history", "holds"),
    [
        ([], True),
        ([read(0, 1, 0)], True),
        ([read(0, 1, 1)], False),  # nobody has written it
        ([write(1, 1), read(2, 3, 1)], True),
        ([write(1, 1), read(2, 3, 0)], False),  # it had been written before it was asked
        ([write(2, 1), read(1, 3, 0)], True),  # asked before, answered behind: either
        ([write(2, 1), read(1, 3, 1)], True),
        ([write(2, 1), read(0, 1, 1)], False),  # of the future
        ([write(0, 1, until=9), read(1, 2, 1), read(3, 4, 0)], False),  # newer, then older
        ([write(0, 1, until=9), read(1, 2, 0), read(3, 4, 1)], True),
        ([write(0, 1, until=9), write(0, 2, until=9), read(1, 2, 2), read(3, 4, 1), read(5, 6, 2)], False),
        ([write(0, 1, until=9), write(0, 2, until=9), read(1, 2, 2), read(3, 4, 1)], True),
    ],
)
def test_a_history_is_explained_or_not(history, holds):
    assert explained(history, 0) is holds


def test_whatever_a_register_does_is_explained_and_a_stale_read_is_found():
    for seed in range(100):
        r = random.Random(seed)
        history, value, now = [], 0, 0.0
        for n in range(1, 60):
            now += 1.0
            if r.random() < 0.5:
                value = n
                history.append(write(now - r.random() * 3, n, until=now + r.random() * 0.9))
                history[-1] = history[-1]._replace(invoked=min(now, history[-1].invoked))
            else:
                history.append(read(now - r.random() * 3, now + r.random() * 3, value))
        assert explained(history, 0), seed
        last = max(each.returned for each in history)
        assert not explained([*history, write(last + 1, -1), read(last + 2, last + 3, value)], 0), seed
