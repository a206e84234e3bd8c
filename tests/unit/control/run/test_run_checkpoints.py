"""The checkpoints of a run: what is durable, what is told, and the one that ends it."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace

import pytest

from esault.control.checkpoints.recovery import Recovery
from esault.control.run.run_checkpoints import MOST_LAST, TELL_AGAIN, RunCheckpoints
from esault.errors import CheckpointError
from esault.messages.checkpoint import NotSnapped, Snapped
from esault.messages.settings import Settings


class FakeUnit:
    """A unit that may take checkpoints; sub-unit 1 is all of it."""

    splits = None

    def __init__(self):
        record = SimpleNamespace(incarnation=1, part=0, leaving=False, finished=False, started_at=1.0)
        self.name, self.subs, self.moving, self.unsettled, self.finishing = "count", {1: record}, False, False, False
        self.plan = SimpleNamespace(kind="bolt", objects="key", window=None)
        self.table, self.planned, self.width, self.parallelism, self.sources = None, None, 1, 1, {}
        self.wants_checkpoint = False
        self.committed = []

    def checkpointed(self, finished):
        self.committed.append(set(finished))


@pytest.fixture
def run():
    made = SimpleNamespace(
        settings=Settings(delivery="eo"),
        outbox=deque(),
        units={"count": FakeUnit()},
        run="run",
        plan=SimpleNamespace(name="words", sinks=(), units={}),
        next_incarnation=7,
        restores=Recovery(),
        notices=deque(),
        now=10.0,
        failures=[],
    )
    made.fail = lambda text, now: made.failures.append(text)
    return made


def test_one_that_all_took_part_in_is_made_durable_and_counted(run):
    kept = []
    taken = RunCheckpoints(run, keep=kept.append)
    number = taken.checkpoints.begin(run.units.values(), 10.0)
    taken.checkpoints.snapped(Snapped(1, number), 12.5)
    assert kept == [taken.completed]
    assert (taken.completed.number, taken.completed.next_incarnation) == (number, 7)
    assert (taken.taken, taken.seconds, taken.resumed_from) == (1, 2.5, 0)
    assert run.units["count"].committed == [set()]


def test_that_they_cannot_keep_up_is_told_once_and_not_of_the_first(run):
    run.settings = Settings(delivery="eo", checkpoint_every=1.0)
    taken = RunCheckpoints(run)
    for at, seconds in ((10, 1.5), (20, 0.9), (30, 1.5), (40, 2.25), (50, 3.0)):
        number = taken.checkpoints.begin(run.units.values(), at)
        taken.checkpoints.snapped(Snapped(1, number), at + seconds)
        assert len(run.notices) == (at >= 40)
    assert "checkpoints take 2.2 s, and there are to be 1 s between them" in run.notices[0]


def test_one_that_cannot_be_made_durable_is_told_of_and_the_run_goes_on(run):
    def full(completed):
        raise CheckpointError("the disk is full")

    taken = RunCheckpoints(run, keep=full)
    number = taken.checkpoints.begin(run.units.values(), 10.0)
    taken.checkpoints.snapped(Snapped(1, number), 10.0)
    assert (taken.taken, taken.completed) == (0, None)
    assert list(run.notices) == ["no checkpoint: the disk is full"]
    assert run.failures == []


def test_the_same_trouble_is_told_again_after_a_while_and_another_at_once(run):
    taken = RunCheckpoints(run)

    def trouble(text, now):
        run.now = now
        taken.checkpoints.not_snapped(NotSnapped(1, taken.checkpoints.begin(run.units.values(), now), text), now)
        return len(run.notices)

    assert trouble("full", 10.0) == 1
    assert trouble("full", 10.0 + TELL_AGAIN - 1) == 1
    assert trouble("slow", 10.0 + TELL_AGAIN - 1) == 2
    assert trouble("slow", 10.0 + 2 * TELL_AGAIN) == 3


def test_the_last_one_is_tried_a_few_times_before_the_run_fails(run):
    taken = RunCheckpoints(run)
    for tried in range(1, MOST_LAST + 1):
        assert run.failures == []
        assert taken.begin_final(10.0)
        assert not taken.begin_final(10.0)  # one is on
        taken.checkpoints.not_snapped(NotSnapped(1, tried, "full"), 10.0)
    assert run.failures == ["the last checkpoint could not be taken: full"]


def test_the_run_ends_with_the_last_one_unless_all_go_back_first(run):
    taken = RunCheckpoints(run)
    taken.begin_final(10.0)
    assert not taken.final_completed
    taken.checkpoints.snapped(Snapped(1, 1), 11.0)
    assert taken.final_completed
    taken.go_back()
    assert not taken.final_completed
