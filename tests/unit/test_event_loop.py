"""An event loop that is stepped: it never waits, and goes by the clock that it is given."""

from __future__ import annotations

import asyncio
import select
import threading

import pytest

from esault.event_loop import MOST_ROUNDS, SteppedLoop
from esault.testing import ManualClock


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def loop(clock):
    made = SteppedLoop(clock)
    yield made
    made.close()


def run(loop, clock, until):
    while not until():
        if not loop.step(1.0):
            clock.advance_to(loop.wake_at)


def test_timers_go_by_the_clock_and_say_when_they_are_due(loop, clock):
    done = []

    async def sleep(seconds):
        await asyncio.sleep(seconds)
        done.append((seconds, round(clock() - began, 3)))

    began = clock()
    for seconds in (3.0, 1.0, 2.0):
        loop.start(sleep(seconds))
    while loop.step(1.0):
        pass
    assert loop.wake_at == pytest.approx(began + 1.0)
    run(loop, clock, lambda: len(done) == 3)
    assert done == [(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)]
    assert not loop.step(1.0)
    assert loop.wake_at == float("inf")


def test_what_is_always_ready_leaves_room_for_others(loop):
    rounds = []

    async def spin():
        while True:
            rounds.append(0)
            await asyncio.sleep(0)

    loop.start(spin())
    assert loop.step(1.0)
    assert len(rounds) <= MOST_ROUNDS


def test_what_comes_from_another_thread_can_be_polled_for(loop):
    got = []

    async def ask():
        here, answer = asyncio.get_running_loop(), asyncio.Event()
        threading.Thread(target=lambda: here.call_soon_threadsafe(answer.set)).start()
        await answer.wait()
        got.append(True)

    loop.start(ask())
    for _ in range(100):
        while loop.step(1.0):
            pass
        if got:
            break
        assert select.select([loop.fileno()], [], [], 10)[0]
    assert got


def test_a_loop_within_a_loop_does_not_mind(clock):
    """As in a notebook."""
    done = []

    async def inner():
        await asyncio.sleep(1)
        done.append(asyncio.get_running_loop())

    async def outer():
        here = asyncio.get_running_loop()
        loop = SteppedLoop(clock)
        loop.start(inner())
        run(loop, clock, lambda: done)
        loop.close()
        assert asyncio.get_running_loop() is here
        assert done[0] is not here

    asyncio.run(outer())


def test_closing_cancels_what_is_open_and_lets_it_end(loop):
    said = []

    async def open_for_long():
        try:
            await asyncio.sleep(1000)
        finally:
            await asyncio.sleep(0)
            said.append("ended")

    loop.start(open_for_long())
    loop.step(1.0)
    loop.close()
    assert said == ["ended"]
    assert not loop.step(1.0)
    assert loop.wake_at == float("inf")


@pytest.mark.filterwarnings("error")
def test_what_is_given_up_leaves_no_word(clock, caplog):
    async def open_for_long():
        await asyncio.sleep(1000)

    loop = SteppedLoop(clock)
    loop.start(open_for_long())
    loop.step(1.0)
    del loop
    assert not caplog.records
