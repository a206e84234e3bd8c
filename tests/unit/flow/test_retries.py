"""Retries after waits that grow, and by the class of the error."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault import Backoff, BatchBolt, Bolt, Topology, TopologyFailed, backoff, dead_letter, fail, shuffle, skip
from esault.sinks import Collect
from esault.sources import Items
from esault.testing import LocalRuntime, ManualClock
from tests.unit.flow import small

ROWS = [("k", i) for i in range(4)]
BEGAN = 1000.0


class Away(Bolt):
    """A service that is away until its time comes; it knows no 2."""

    back = BEGAN

    def process(self, key, value):
        if value == 2:
            raise KeyError(value)
        if self.context.now() < self.back:
            raise ConnectionError("away")
        self.emit(key, (value, self.context.now()))


class AsyncAway(Away):
    async def process(self, key, value):
        super().process(key, value)


def ran(bolt, policy, back, **options):
    made = type("Made", (bolt,), {"back": BEGAN + back})
    return small.run(small.through(ROWS, made, on_error=policy, **options), clock=ManualClock(BEGAN))


@pytest.mark.parametrize("bolt", [Away, AsyncAway])
def test_a_tuple_is_tried_again_after_waits_that_grow(bolt):
    policy = dead_letter("d.jsonl", retries=backoff(5, initial=0.5, factor=3, most=4, jitter=0, errors=ConnectionError))
    local = ran(bolt, policy, back=5)
    (first, at), *more = [value for _, value in local.emitted("worker")]
    assert first == 0
    assert 0.5 + 1.5 + 4 <= at - BEGAN < 0.5 + 1.5 + 4 + 0.5
    assert [value for value, _ in more] == [1, 3]
    assert [(each["value"], each["error"]) for each in local.dead_letters] == [(2, "KeyError: 2")]  # and at once


@pytest.mark.parametrize("bolt", [Away, AsyncAway])
def test_when_all_attempts_have_failed_the_policy_follows(bolt):
    local = ran(bolt, skip(retries=backoff(2, initial=0.1, jitter=0)), back=1e6)
    assert local.report().units["worker"].errors == 4
    with pytest.raises(TopologyFailed, match="ConnectionError: away"):
        ran(bolt, fail(retries=backoff(2)), back=1e6)


def test_a_function_step_waits_too():
    left = [3]

    def away(value):
        if left[0]:
            left[0] -= 1
            raise TimeoutError
        return value

    t = Topology("t")
    t.spout("in", Items(ROWS)).map(away, on_error=skip(retries=backoff(3, errors=(OSError,)))).sink("out", Collect())
    random.seed(7)
    local = LocalRuntime(t)
    local.run_until_drained()
    assert len(local.landed("out")) == 4
    assert random.random() == random.Random(7).random(), "numbers of the user's own are not drawn for the jitter"


@given(st.integers(0, 2000), st.floats(0, 1), st.floats(0, 1))
def test_a_wait_is_never_longer_than_most_nor_shorter_than_its_jitter_lets_it(tries, jitter, chance):
    made = Backoff(5, 0.1, 2.0, 5.0, jitter)
    whole = min(5.0, 0.1 * 2.0 ** min(tries, 64))
    assert whole * (1 - jitter) - 1e-9 <= made.wait(tries, chance) <= whole


@pytest.mark.parametrize(
    "wrong",
    [
        {"attempts": 0},
        {"attempts": True},
        {"initial": -1},
        {"factor": 0.5},
        {"most": float("inf")},
        {"jitter": 2},
        {"errors": "OSError"},
        {"errors": ()},
    ],
)
def test_what_cannot_be_is_refused(wrong):
    with pytest.raises(ValueError, match=f"backoff: {next(iter(wrong))}="):
        backoff(**wrong)


def test_the_drawing_says_how_often():
    from esault.topology.drawing import draw

    t = small.through(ROWS, Away, on_error=skip(retries=backoff(7)), grouping=shuffle())
    assert "skip(retries=backoff(7))" in draw(t.plan())


class Pops(BatchBolt):
    """Takes its rows out of their list one by one, and fails in the midst of it the first time."""

    def __init__(self):
        self.failed = False

    def process_batch(self, rows):
        while rows:
            key, value = rows.pop()
            if value == 1 and not self.failed:
                self.failed = True
                raise ConnectionError("away")
            self.emit_batch([(key, value)])


def test_each_try_of_a_batch_has_all_of_its_rows():
    local = LocalRuntime(small.through(ROWS, Pops, on_error=fail(retries=1)))
    local.run_until_drained()
    assert sorted(local.emitted("worker")) == ROWS


def test_a_dead_letter_of_a_batch_has_all_of_its_rows():
    local = LocalRuntime(small.through(ROWS, Pops, on_error=dead_letter("dead.jsonl")))
    local.run_until_drained()
    assert [letter["value"] for letter in local.dead_letters] == [ROWS]
