"""Work by the clock: overdue roots are looked for, reports are made, and one that is idle sleeps as long as it can."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from esault.flow.worker.upkeep import WATCH_EVERY, Upkeep


class Bench:
    def __init__(self, tracked=True, report_at=10.25):
        self.calls = []
        self.waiting = False
        self.roots = SimpleNamespace(stalled=False, open_count=0, watch=lambda now: self.calls.append(("watch", now)))
        bench = self

        class Acks:
            def __bool__(self):
                return bench.waiting

            def send(self):
                bench.calls.append("send")

        self.upkeep = Upkeep(
            Acks(), self.roots, tracked, 10.0, report_at, self.report, lambda: self.calls.append("stalled")
        )

    def report(self, now):
        self.calls.append(("report", now))
        return now + 1.0

    def run(self, now):
        self.upkeep.run(now)
        calls, self.calls = self.calls, []
        return calls


def test_each_is_done_when_it_is_due_and_no_sooner():
    bench = Bench()
    assert bench.upkeep.due_at == 10.0 + WATCH_EVERY
    assert bench.run(10.0 + WATCH_EVERY / 2) == []
    assert bench.run(10.1) == ["send", ("watch", 10.1)]
    assert bench.upkeep.due_at == pytest.approx(10.1 + WATCH_EVERY)
    assert bench.run(10.12) == []
    assert bench.run(10.25) == ["send", ("watch", 10.25), ("report", 10.25)]
    assert bench.run(10.28) == []
    assert bench.run(11.25)[-1] == ("report", 11.25)


def test_a_report_may_be_due_before_the_next_look():
    bench = Bench(report_at=10.01)
    assert bench.upkeep.due_at == 10.01
    assert bench.run(10.01) == [("report", 10.01)]
    assert bench.upkeep.due_at == 10.0 + WATCH_EVERY


def test_roots_are_looked_at_where_they_are_acked_and_told_of_once_when_they_stall():
    bench = Bench(tracked=False)
    bench.roots.stalled = True
    assert bench.run(10.1) == ["send"]
    bench = Bench()
    bench.roots.stalled = True
    assert bench.run(10.1) == ["send", ("watch", 10.1), "stalled"]
    assert bench.run(10.2) == ["send", ("watch", 10.2)]


@pytest.mark.parametrize(("waiting", "open_count", "soon"), [(False, 0, False), (True, 0, True), (False, 1, True)])
def test_one_that_has_nothing_open_wakes_for_its_report_alone(waiting, open_count, soon):
    bench = Bench()
    bench.waiting, bench.roots.open_count = waiting, open_count
    assert bench.upkeep.wake_at == (bench.upkeep.due_at if soon else 10.25)
