"""Restarts after transient errors: with checkpoints one answers all that fails until then, without them only what failed is replaced."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from esault.control.run.restarts import Restarts
from esault.messages.control import Failed, Kill


class Driver:
    def __init__(self, strategy="fixed-delay:attempts=3,delay=2"):
        self.settings = SimpleNamespace(restart_strategy=strategy)
        self.phase, self.notices, self.outbox, self.completed = "running", [], [], None
        self.failed, self.back, self.abandoned = [], [], 0
        self.units = {
            "count": SimpleNamespace(name="count", subs={i: SimpleNamespace(restarting=False) for i in (1, 2)})
        }
        self.acker_assignment = SimpleNamespace(number_of=lambda i: 0 if i == 50 else None)
        self.run_checkpoints = SimpleNamespace(failed=lambda message, now: self.failed.append(message.incarnation))
        self.going_back = SimpleNamespace(begin=lambda why, now, counted: self.back.append((why, now, counted)))
        self.checkpoints = SimpleNamespace(abandon=self.abandon)

    def abandon(self):
        self.abandoned += 1


def bench(exactly, **options):
    driver = Driver(**options)
    return Restarts(driver, exactly), driver


def fails(restarts, incarnation, now, transient=True, text="disk full\ntraceback"):
    restarts.handle(Failed(incarnation, "count", text, transient=transient), now)


def test_with_checkpoints_all_go_back_once_for_all_that_failed_until_then():
    restarts, driver = bench(True)
    fails(restarts, 1, 10.0)
    fails(restarts, 2, 11.0)
    assert restarts.waiting == (1, 2)
    assert driver.abandoned == 1
    assert driver.notices == ["count/1: disk full: restart 1 of 3 in 2 s, all go back to the beginning"]
    restarts.tick(11.9)
    assert driver.back == []
    restarts.tick(12.0)
    assert driver.back == [("count/1 failed (disk full)", 12.0, False)]
    assert not restarts
    restarts.tick(13.0)
    assert len(driver.back) == 1
    driver.completed = SimpleNamespace(number=7)
    fails(restarts, 1, 14.0)
    assert driver.notices[-1].endswith("restart 2 of 3 in 2 s, all go back to checkpoint 7")
    assert restarts.count == 2


def test_without_them_each_that_failed_is_ended_when_its_time_has_come():
    restarts, driver = bench(False)
    fails(restarts, 1, 10.0)
    fails(restarts, 50, 11.0)
    assert driver.notices[0].endswith("restart 1 of 3 in 2 s, it is replaced")
    assert driver.notices[1].startswith("ack server 0: disk full: restart 2 of 3")
    assert driver.abandoned == 0
    restarts.tick(12.5)
    assert driver.outbox == [("keeper", Kill(1))]
    assert driver.units["count"].subs[1].restarting
    assert not driver.units["count"].subs[2].restarting
    restarts.tick(13.0)
    assert driver.outbox[1:] == [("keeper", Kill(50))]
    assert driver.back == []
    assert not restarts


def test_one_that_died_meanwhile_has_been_answered():
    restarts, driver = bench(False)
    fails(restarts, 1, 10.0)
    del driver.units["count"].subs[1]
    restarts.tick(20.0)
    assert driver.outbox == []
    assert not restarts


def test_one_of_a_life_that_is_over_ends_nothing():
    restarts, driver = bench(True)
    fails(restarts, 99, 10.0)
    assert (driver.failed, restarts.waiting, restarts.count) == ([], (), 0)


def test_what_does_not_pass_and_what_fails_while_the_run_ends_is_for_others():
    restarts, driver = bench(True)
    fails(restarts, 1, 10.0, transient=False)
    for phase in ("stopping", "ended"):
        driver.phase = phase
        fails(restarts, 2, 10.0)
    assert driver.failed == [1, 2, 2]
    assert not restarts


@pytest.mark.parametrize(("strategy", "told"), [("fixed-delay:attempts=1,delay=0", 1), ("none", 0)])
def test_where_no_restart_is_left_the_run_fails(strategy, told):
    restarts, driver = bench(False, strategy=strategy)
    for now in (1.0, 2.0):
        fails(restarts, 1, now)
        restarts.tick(now)
    assert driver.failed == ([1] if told else [1, 1])
    assert sum(notice.endswith("no restart is left (fixed-delay: 1)") for notice in driver.notices) == told
