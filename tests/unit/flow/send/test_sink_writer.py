"""When the rows of a sink are committed: by the clock, by their number, and not for more than a share of the time."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from esault import Sink
from esault.flow.channel.lineage import Lineage
from esault.flow.send.sink_writer import COMMIT_SHARE, QUIET, SinkWriter
from esault.messages.delivery import Delivery
from esault.messages.settings import Settings
from esault.testing.manual_clock import ManualClock
from esault.topology.plan import SinkPlan


class Slow(Sink):
    def __init__(self, clock):
        self.clock = clock

    def write(self, rows):
        pass

    def prepare(self, epoch):
        self.clock.advance(0.5)


@pytest.fixture
def it():
    clock = ManualClock()
    acks = SimpleNamespace(add=lambda *_: None)
    writer = SinkWriter(SinkPlan("slow", Slow(clock)), None, Settings(), acks, lambda: 1, clock)
    return SimpleNamespace(clock=clock, writer=writer, root=0)


def write(it):
    it.root += 1
    it.writer.write(Lineage((1, it.root, 0), 0.0), ("a",), (1,), None, it.clock())


def test_the_first_commit_does_not_tell_what_those_behind_it_take(it):
    every = Settings().commit_every
    assert it.writer.due_at(False) is None
    write(it)
    assert it.writer.due_at(False) == it.clock() + every
    it.writer.commit()
    write(it)
    assert it.writer.due_at(False) == it.clock() + every


def test_where_nothing_else_is_to_be_done_rows_wait_for_no_others(it):
    every = Settings().commit_every
    assert it.writer.due_at(True) is None
    write(it)
    it.clock.advance(QUIET / 2)
    write(it)
    assert it.writer.due_at(True) == it.clock() + QUIET  # what comes in between goes with it
    it.writer.commit()
    begun = it.clock() - 0.5
    write(it)
    assert it.writer.due_at(True) == it.clock() + QUIET > begun + every
    it.writer.commit()
    write(it)
    assert it.writer.due_at(True) == it.clock() + 0.5 * (1 / COMMIT_SHARE - 1) == it.writer.due_at(False)


def test_commits_where_nothing_else_is_to_be_done_are_as_far_apart_as_others(it, monkeypatch):
    monkeypatch.setattr(Slow, "prepare", lambda self, epoch: None)
    write(it)
    it.writer.commit()
    begun = it.clock()
    it.clock.advance(QUIET)
    write(it)
    assert it.writer.due_at(True) == begun + Settings().commit_every < it.writer.due_at(False)
    it.writer.commit()
    it.clock.advance(1.0)
    write(it)
    assert it.writer.due_at(True) == it.clock() + QUIET


def test_commits_take_at_most_their_share_of_the_time(it):
    for _ in range(2):
        write(it)
        it.writer.commit()
    write(it)
    assert it.writer.due_at(False) == pytest.approx(it.clock() + 0.5 * (1 / COMMIT_SHARE - 1))


def test_rows_have_landed_when_they_are_committed(it):
    write(it)
    assert it.writer.landed == 0
    it.writer.commit()
    write(it)
    assert it.writer.landed == 1


def test_with_checkpoints_rows_have_landed_when_theirs_or_a_later_one_is_complete():
    clock = ManualClock()
    exactly = Settings(delivery=Delivery.EXACTLY_ONCE, checkpoint_every=1.0)
    writer = SinkWriter(SinkPlan("slow", Slow(clock)), None, exactly, None, lambda: 1, clock)
    it = SimpleNamespace(clock=clock, writer=writer, root=0)
    for number in (1, 2, 3):
        write(it)
        writer.prepare(number, lambda handle: None)
    writer.complete(2, None, lambda _: None)  # the first was given up
    assert writer.landed == 2
    writer.complete(3, None, lambda _: None)
    assert writer.landed == 3


class Plain(Sink):
    def write(self, rows):
        pass


def test_rows_of_a_sink_that_commits_nothing_have_landed_at_once(it):
    it.writer = SinkWriter(SinkPlan("plain", Plain()), None, Settings(), None, lambda: 1, it.clock)
    write(it)
    assert it.writer.landed == 1
