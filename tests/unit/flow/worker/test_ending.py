"""The end of a sub-unit: step by step, and END only when nothing of it can be lost any more."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from esault.flow.worker.ending import Ending
from esault.flow.worker.phase import Event, Lifecycle, Phase
from esault.messages.control import Ended, Finished, Stopped
from esault.messages.status import Status, SubUnitCounts

STATUS = Status(7, 3.0, SubUnitCounts())


class Bench:
    def __init__(self, tracked=True):
        self.calls, self.said, self.left = [], [], 2
        self.lifecycle = Lifecycle()
        self.reader = SimpleNamespace(handover=None, unfinished=0)
        self.roots = SimpleNamespace(credit=True, open_count=0, replay_one=lambda now: False)
        self.acks = SimpleNamespace(send=lambda: self.calls.append("acks"), retry=lambda: True)
        self.sinks = SimpleNamespace(
            uncommitted=False, finish=lambda: self.calls.append("finish"), close=self.close_sinks
        )
        self.refuses: list[str] = []
        self.outputs = SimpleNamespace(sinks=self.sinks, end=lambda now: self.calls.append(("end", now)))
        self.ending = Ending(
            incarnation=7,
            unit="count",
            lifecycle=self.lifecycle,
            reader=self.reader,
            roots=self.roots,
            acks=self.acks,
            outputs=self.outputs,
            watermarks=SimpleNamespace(over=lambda now: self.calls.append(("over", now))),
            take_steps=self.take_steps,
            tracked=tracked,
            clock=lambda: 3.0,
            say=self.said.append,
        )
        self.lifecycle.on(Event.START)

    def take_steps(self, steps):
        taken = next(steps, "none")
        self.left -= 1
        return taken != "none", self.left <= 0

    def close_sinks(self):
        self.calls.append("close sinks")
        return self.refuses

    def finishing(self):
        self.ending.input_ended()
        self.lifecycle.on(Event.FINISH)
        self.ending.begin(iter([None, None]))
        return self

    def committing(self):
        self.finishing()
        while self.lifecycle.phase is Phase.FINISHING:
            assert self.ending.advance()
        return self

    def stop(self, at_once=False):
        failed = []

        def fail(text, error):
            failed.append(text)
            self.lifecycle.on(Event.FAIL)

        self.ending.stop(at_once, lambda: self.calls.append("close objects"), fail, lambda: STATUS)
        return failed


def test_elements_are_finished_then_all_is_committed_then_the_end_is_sent():
    bench = Bench().finishing()
    assert bench.said == [Ended(7)]
    assert bench.ending.advance()
    assert bench.lifecycle.phase is Phase.FINISHING
    assert bench.ending.advance()
    assert bench.lifecycle.phase is Phase.COMMITTING
    assert bench.ending.advance()
    assert bench.lifecycle.phase is Phase.FINISHED
    assert bench.calls == ["acks", ("over", 3.0), ("end", 3.0)]  # the last watermark goes before END
    assert bench.said == [Ended(7), Finished(7)]
    assert not bench.ending.advance()


def set_moving(bench):
    bench.reader.handover = SimpleNamespace(active=True)


def set_unfinished(bench):
    bench.reader.unfinished = 1


def set_no_credit(bench):
    bench.roots.credit = False


@pytest.mark.parametrize(("hinder", "untracked"), [(set_moving, False), (set_unfinished, False), (set_no_credit, True)])
def test_finish_comes_behind_rows_that_wait_and_where_something_may_be_sent(hinder, untracked):
    bench = Bench().finishing()
    hinder(bench)
    assert not bench.ending.advance()
    assert bench.left == 2
    other = Bench(tracked=False).finishing()
    hinder(other)
    assert other.ending.advance() is untracked


def test_calls_that_are_open_are_waited_for():
    bench = Bench().finishing()
    bench.left = 0
    bench.ending.open_calls = [1]
    assert bench.ending.advance()
    assert bench.lifecycle.phase is Phase.FINISHING
    bench.ending.open_calls = []
    bench.ending.advance()
    assert bench.lifecycle.phase is Phase.COMMITTING


def open_root(bench):
    bench.roots.open_count = 1


def uncommitted(bench):
    bench.sinks.uncommitted = True


def acks_wait(bench):
    bench.acks.retry = lambda: False


@pytest.mark.parametrize("hinder", [set_moving, open_root, uncommitted, acks_wait])
def test_the_end_is_not_sent_while_something_could_be_lost(hinder):
    bench = Bench().committing()
    hinder(bench)
    assert not bench.ending.advance()
    assert bench.lifecycle.phase is Phase.COMMITTING
    assert ("end", 3.0) not in bench.calls


def test_what_is_overdue_is_sent_again_first():
    bench = Bench().committing()
    bench.roots.replay_one = lambda now: True
    assert bench.ending.advance()
    assert bench.calls == []


def test_it_stops_once_with_a_last_word():
    bench = Bench()
    assert bench.stop() == []
    assert bench.stop() == []
    assert bench.calls == ["finish", "acks", "close objects", "close sinks"]
    assert bench.said == [Stopped(7, STATUS)]
    assert bench.lifecycle.phase is Phase.STOPPED


def test_one_that_stops_at_once_or_has_failed_commits_nothing():
    bench = Bench()
    bench.stop(at_once=True)
    assert bench.calls == ["close objects", "close sinks"]
    bench = Bench()
    bench.lifecycle.on(Event.FAIL)
    bench.refuses = ["x"]
    assert bench.stop() == []  # why it failed is known
    assert bench.calls == ["close objects", "close sinks"]
    assert bench.said == [Stopped(7, STATUS)]


def test_a_sink_that_cannot_finish_fails_and_all_is_closed_nevertheless():
    bench = Bench()

    def finish():
        raise OSError("disk full")

    bench.sinks.finish = finish
    bench.refuses = ["sink a", "sink b"]
    (text,) = bench.stop()
    assert "disk full" in text
    assert "unit 'count'" in text
    assert bench.calls == ["close objects", "close sinks"]
    bench = Bench()
    bench.refuses = ["sink a", "sink b"]
    assert bench.stop() == ["sink a"]
