"""What follows where a process cannot be made: told now and then, a change is given up, a run that needs it ends."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from esault.control.run.unforked import MOST_TRIES_OF_A_NEWCOMER, TELL_AGAIN, Unforked
from esault.messages.control import Kill, NotForked


class Driver:
    def __init__(self):
        self.phase, self.notices, self.outbox, self.died, self.failed, self.dropped = "running", [], [], [], [], []
        self.unchained = False
        self.units = {
            "count": SimpleNamespace(
                name="count",
                subs={1: SimpleNamespace(joining=False, unforked=""), 2: SimpleNamespace(joining=True, unforked="")},
                died=lambda incarnation, text, now: self.died.append((incarnation, text, now)),
            )
        }
        self.unit_of = {50: "", 51: "count"}
        self.unchaining = SimpleNamespace(drop=self.drop)

    def drop(self, name, why, now):
        self.dropped.append(why)
        return self.unchained

    def fail(self, text, now):
        self.failed.append(text)


def tell(unforked, incarnation, tries, again=1.0, now=10.0, text="no memory"):
    unforked.handle(NotForked(incarnation, text, tries, again), now)


@pytest.fixture
def bench():
    driver = Driver()
    return Unforked(driver), driver


def test_one_that_is_needed_is_tried_again_and_told_of_now_and_then(bench):
    unforked, driver = bench
    tell(unforked, 1, 1, now=10.0)
    tell(unforked, 1, 2, now=10.0 + TELL_AGAIN / 2)
    tell(unforked, 1, 3, again=2.5, now=10.0 + TELL_AGAIN)
    assert driver.notices == [
        "count/1 cannot be started: no memory (try 1, the next one in 1 s)",
        "count/1 cannot be started: no memory (try 3, the next one in 2.5 s)",
    ]
    assert unforked.why == {1: "no memory"}
    assert (driver.died, driver.failed, driver.outbox) == ([], [], [])
    assert unforked
    unforked.forget(1)
    unforked.forget(1)
    assert not unforked


def test_one_that_will_not_be_tried_again_ends_the_run(bench):
    unforked, driver = bench
    tell(unforked, 1, 9, again=0.0)
    tell(unforked, 1, 9, again=0.0)  # the last word is always told
    assert driver.notices == ["count/1 cannot be started: no memory (given up)"] * 2
    assert driver.failed[0] == "count/1 could not be started in 9 tries: no memory"


@pytest.mark.parametrize(
    ("tries", "again", "given_up"), [(1, 1.0, False), (MOST_TRIES_OF_A_NEWCOMER, 1.0, True), (1, 0.0, True)]
)
def test_a_change_goes_on_without_its_newcomer(bench, tries, again, given_up):
    unforked, driver = bench
    tell(unforked, 2, tries, again)
    assert driver.failed == driver.dropped == []
    assert bool(unforked) is not given_up
    assert driver.outbox == ([("keeper", Kill(2))] if given_up else [])
    assert driver.died == ([(2, "no memory", 10.0)] if given_up else [])
    assert driver.units["count"].subs[2].unforked == ("no memory" if given_up else "")


@pytest.mark.parametrize("unchained", [False, True])
def test_a_bolt_that_gets_processes_of_its_own_stays_chained(bench, unchained):
    unforked, driver = bench
    driver.unchained = unchained
    tell(unforked, 1, MOST_TRIES_OF_A_NEWCOMER - 1)
    assert driver.dropped == []
    tell(unforked, 1, MOST_TRIES_OF_A_NEWCOMER)
    assert driver.dropped == ["count/1 could not be started: no memory"]
    assert bool(unforked) is not unchained
    assert driver.failed == []


def test_an_ack_server_is_named_so_and_what_is_not_wanted_says_nothing(bench):
    unforked, driver = bench
    tell(unforked, 50, 1)
    assert driver.notices == ["ack server 50 cannot be started: no memory (try 1, the next one in 1 s)"]
    tell(unforked, 51, 1)
    tell(unforked, 99, 1)
    driver.phase = "stopping"
    tell(unforked, 1, 1, again=0.0)
    assert len(driver.notices) == 1
    assert list(unforked.why) == [50]
    assert driver.failed == []
