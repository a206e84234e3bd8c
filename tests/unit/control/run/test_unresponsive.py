"""Silent sub-units: who is asked, what is told, who is replaced, at which times."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace

import pytest

from esault.control.run.unresponsive import Unresponsive
from esault.messages.control import Added, Built, DumpThreads, Kill, ThreadDump
from esault.messages.settings import Settings


@pytest.fixture
def driver():
    def made(timeout=0.0):
        return SimpleNamespace(
            phase="running",
            settings=Settings(heartbeat_timeout=timeout),
            restarts=SimpleNamespace(waiting=()),
            units={"slow": SimpleNamespace(name="slow", subs={7: None, 8: None})},
            outbox=deque(),
            notices=deque(),
        )

    return made


def heard(watch, *incarnations, now):
    for incarnation in incarnations:
        assert not watch.handle(Added(incarnation, ()), now)


def test_the_silent_one_is_asked_once_and_told_of_with_its_place(driver):
    driver = driver()
    watch = Unresponsive(driver)
    heard(watch, 7, 8, now=0.0)
    watch.tick(4.9)
    heard(watch, 8, now=4.9)
    assert not driver.outbox
    watch.tick(5.1)
    watch.tick(5.2)
    assert list(driver.outbox) == [(7, DumpThreads(7))]
    assert watch.handle(ThreadDump(7, "process, slow.py:12", "esault-data:\n..."), 5.3)
    watch.tick(100.0)
    assert driver.notices[0] == "no word from slow/7 for 5 s: it is in process, slow.py:12"
    assert not [message for _, message in driver.outbox if isinstance(message, Kill)]
    heard(watch, 7, now=101.0)
    (missed, other) = watch.all
    assert (missed.at, missed.until, missed.threads, missed.replaced) == (0.0, 101.0, "esault-data:\n...", False)
    assert (other.incarnation, other.until) == (8, None)
    watch.tick(107.0)
    assert [message for _, message in driver.outbox].count(DumpThreads(7)) == 2


@pytest.mark.parametrize(
    ("place", "told"),
    [(None, "a frozen process, or code that keeps the interpreter for itself"), ("", "it is in the engine's own code")],
)
def test_one_that_does_not_answer_and_one_that_is_in_the_engine(driver, place, told):
    driver = driver()
    watch = Unresponsive(driver)
    heard(watch, 7, 8, now=0.0)
    watch.tick(5.5)
    if place is not None:
        watch.handle(ThreadDump(7, place, "stack"), 5.6)
        watch.handle(ThreadDump(8, place, "stack"), 5.6)
    watch.tick(6.4)
    watch.tick(6.6)
    watch.tick(7.6)
    assert list(driver.notices) == [f"no word from slow/7 for 5 s: {told}"]  # of a unit once
    assert [missed.told for missed in watch.all] == [True, True]


def test_a_slow_bolt_that_misses_many_is_told_of_once_and_the_newest_are_kept(driver):
    driver = driver()
    watch = Unresponsive(driver)
    heard(watch, 7, 8, now=0.0)
    for tuple_ in range(1, 251):
        watch.tick(tuple_ * 6.0 - 0.1)
        heard(watch, 8, now=tuple_ * 6.0)
        watch.handle(ThreadDump(7, "process, slow.py:12", "stack"), tuple_ * 6.0)
        heard(watch, 7, now=tuple_ * 6.0)
    assert len(driver.notices) == 1
    assert len(watch.all) == 100
    assert watch.all[-1].at == 1494.0


def test_with_a_timeout_it_is_ended_once(driver):
    driver = driver(2.0)
    watch = Unresponsive(driver)
    heard(watch, 7, 8, now=0.0)
    for now in (0.5, 1.1, 1.5, 1.9, 2.1, 2.2, 2.3):
        heard(watch, 8, now=now)
        watch.tick(now)
    assert list(driver.outbox) == [(7, DumpThreads(7)), ("keeper", Kill(7))]
    assert list(driver.notices) == [
        "no word from slow/7 for 1 s: a frozen process, or code that keeps the interpreter for itself",
        "slow/7 is ended and replaced: no word for 2 s",
    ]
    watch.gone(7, 2.4)
    del driver.units["slow"].subs[7]
    watch.tick(2.5)
    assert [(s.until, s.replaced) for s in watch.all] == [(2.4, True)]


def test_one_that_waits_for_its_restart_or_was_never_heard_may_be_silent(driver):
    driver = driver(2.0)
    driver.restarts.waiting = (7,)
    watch = Unresponsive(driver)
    heard(watch, 7, now=0.0)
    for now in range(1, 20):
        watch.tick(float(now))
    assert not driver.outbox
    assert not watch.handle(Built(8, 1, "data", "express"), 19.5)
    watch.handle(ThreadDump(9, "process, x.py:1", "late, of one that is gone"), 19.6)
    assert not watch.all
